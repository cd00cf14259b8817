"""`forethought push RUN REPO`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from forethought.cli.flags import Switch
from forethought.runs.run_folder import RunFolder


@dataclass(frozen=True)
class Push:
    """Which run, and where to."""

    run: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """A run folder; its newest checkpoint is pushed."""

    repo: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="REPO")]
    """`owner/name` on the Hugging Face hub; it is made where it does not exist."""

    private: Switch = False
    """Make a new repository a private one."""

    folder: str | None = None
    """Write what would be uploaded into this folder, and upload nothing."""


def push(settings: Push) -> None:
    """Push a run's model to the Hugging Face hub, with settings and a model card.

    The card holds the table of evaluation.json, where there is one: run `forethought evaluate`
    first. The token is the one of `hf auth login`, or HF_TOKEN. The settings are
    uploaded as training_config.yaml, paths of this machine included.

    Examples:
      forethought push runs/ppo my-name/number-line
      forethought push runs/ppo my-name/number-line --folder out
    """
    from forethought.reports.hub import push_run, write_files

    run = RunFolder.open(Path(settings.run))
    if settings.folder is not None:
        write_files(run, Path(settings.folder), name=settings.repo.rpartition("/")[2])
        print(settings.folder)
        return
    print(push_run(run, settings.repo, private=settings.private))

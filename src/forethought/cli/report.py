"""`forethought report RUN` and `forethought push RUN REPO`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from forethought.cli.flags import Operand, Placeholder, Switch
from forethought.runs.run_folder import RunFolder


@dataclass(frozen=True)
class Report:
    """Settings of `forethought report`."""

    run: Annotated[str, Operand("RUN")]
    """A run folder."""

    gif: Annotated[tuple[int, ...] | None, Placeholder("[EPISODE ...]")] = None
    """Draw an episode as an animated GIF, too: by its number in the report; without a number the
    one that the report opens on."""


def report(settings: Report) -> None:
    """Write a run's curves and episodes as one HTML page, which opens from disk.

    With --gif an episode also becomes an animated image: the observation, and beneath it thoughts,
    action and reward. Environments without images show their text.

    Examples:
      forethought report runs/ppo
      forethought report runs/ppo --gif
      forethought report runs/ppo --gif 12
    """
    from forethought.reports import write_gif, write_report

    folder = RunFolder.open(Path(settings.run))
    print(write_report(folder.path))
    if settings.gif is not None:
        for episode in settings.gif or (None,):
            print(write_gif(folder.path, episode))


@dataclass(frozen=True)
class Push:
    """Which run, and where to."""

    run: Annotated[str, Operand("RUN")]
    """A run folder; its newest checkpoint is pushed."""

    repo: Annotated[str, Operand("REPO")]
    """`owner/name` on the Hugging Face hub; it is made where it does not exist."""

    private: Switch = False
    """Make a new repository a private one."""

    folder: str | None = None
    """Write what would be uploaded into this folder, without an upload."""


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

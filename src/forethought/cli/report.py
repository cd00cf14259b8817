"""`forethought report RUN`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from forethought.runs.run_folder import RunFolder


@dataclass(frozen=True)
class Report:
    """Of which run."""

    run: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """A run folder."""


def report(settings: Report) -> None:
    """Write a run's curves and episodes as one HTML page, which opens from disk.

    Examples:
      forethought report runs/ppo
    """
    from forethought.reports import write_report

    folder = RunFolder.open(Path(settings.run))
    print(write_report(folder.path))

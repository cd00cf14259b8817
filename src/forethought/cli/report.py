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

    gif: Annotated[tuple[int, ...] | None, tyro.conf.arg(metavar="[EPISODE ...]")] = None
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

"""Reports: a run's curves, results and episodes as one HTML page, an episode as a GIF."""

from forethought.reports.animation import write_gif
from forethought.reports.page import write_report

__all__ = ["write_gif", "write_report"]

"""What happened? A run's curves, results and episodes as one HTML page."""

from forethought.reports.page import write_report

__all__ = ["write_report"]

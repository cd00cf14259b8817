"""What was skipped is listed at the end, with the command that would enable it."""

import signal
from collections.abc import Generator

import pytest

from tests.skips import fault_of, lines_of


@pytest.fixture
def hears_sigint() -> Generator[None]:
    """SIGINT is a KeyboardInterrupt, also where the shell that started the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip that names no command is a failure."""
    report = yield
    _refuse_bare_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Of a whole file, likewise."""
    report = yield
    _refuse_bare_skip(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = [_reason_of(report) for report in terminalreporter.getreports("skipped")]
    if reasons:
        terminalreporter.section("skipped: tests, what they need, and the command for it")
        for line in lines_of(reasons):
            terminalreporter.write_line(line)


def _refuse_bare_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        fault = fault_of(_reason_of(report))
        if fault is not None:
            report.outcome, report.longrepr = "failed", f"{report.nodeid}: {fault}"


def _reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """A skip's report holds file, line and reason."""
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)

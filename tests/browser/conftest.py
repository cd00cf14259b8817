"""One browser for the tests of a file.

Not for all tests of a process: while Playwright is open, nothing else may run an event loop.
"""

from collections.abc import Generator

import pytest
from playwright.sync_api import Browser

from tests.browser.browser import open_browser


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with open_browser() as opened:
        yield opened

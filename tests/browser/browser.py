"""The browser that the machine has, driven by Playwright, and what a page did while it was open."""

import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from tests.skips import needs

NAMES = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser", "chrome")
DESKTOP, PHONE = (1280, 900), (390, 844)
"""Width and height in CSS pixels."""
PATIENCE_MS = 120_000
"""A busy machine is slow; what never happens still fails."""


@cache
def find_browser() -> str | None:
    """The first Chromium on PATH that starts. Ubuntu has stubs of that name that do not."""
    for path in filter(None, map(shutil.which, NAMES)):
        try:
            subprocess.run([path, "--version"], check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            continue
        return path
    return None


@contextmanager
def open_browser() -> Generator[Browser]:
    """A headless browser; skips the test where there is none.

    Playwright's own download is not used. The profile is a folder below TMPDIR.
    """
    path = find_browser()
    if path is None:
        pytest.skip(needs("a Chromium browser on PATH", "sudo apt-get install chromium"))
    with sync_playwright() as playwright:
        # Without a sandbox: root may not have one, and the pages are ours.
        launch = playwright.chromium.launch
        with launch(executable_path=path, chromium_sandbox=False, handle_sigint=False) as browser:
            yield browser


class Visit:
    """One page, opened from disk, and what it did: complaints, dialogs, requests."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self.requests.append(request.url))

    def _refuse(self, dialog: Dialog) -> None:
        self.complaints.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def text(self, selector: str) -> str:
        """What a reader sees of one element, spaces made single."""
        return " ".join(self.page.locator(selector).inner_text().split())


@contextmanager
def visit(
    browser: Browser, path: Path, *, size: tuple[int, int] = DESKTOP, fragment: str = ""
) -> Generator[Visit]:
    """Opens a file. Afterwards the page must have complained of nothing and asked for nothing."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height})
    try:
        visited = Visit(context.new_page())
        address = path.resolve().as_uri()
        visited.page.goto(address + fragment)
        yield visited
        assert visited.complaints == []
        assert [url for url in visited.requests if not url.startswith((address, "data:"))] == []
    finally:
        context.close()

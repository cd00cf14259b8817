"""What every page has in common: one HTML document that needs nothing beside itself."""

from pathlib import Path
from string import Template

from forethought.reports.markup import escape

_ASSETS = Path(__file__).with_name("assets")


def document(*, title: str, policy: str, body: str) -> str:
    """The document as text, in the reports' style.

    Args:
        title: text.
        policy: what a browser may run and load (Content-Security-Policy).
        body: HTML.
    """
    return Template(asset("document.html")).substitute(
        title=escape(title), policy=policy, style=asset("report.css"), body=body
    )


def asset(name: str) -> str:
    """A file that pages are made of."""
    return (_ASSETS / name).read_text(encoding="utf-8")

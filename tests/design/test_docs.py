"""The documentation site builds without a warning, and no link in the repository is broken."""

import importlib
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES_OUTSIDE = sorted(ROOT.glob("*.md"))
"""Not part of the site; Sphinx checks the links of those that are."""


def build(source: Path, into: Path, *, builder: str = "dummy") -> subprocess.CompletedProcess[str]:
    """The builder "dummy" reads every page and resolves every link, and writes no page."""
    command = [sys.executable, "-m", "sphinx", "--builder", builder, "--quiet"]
    command += ["--fail-on-warning", "--keep-going", str(source), str(into)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)


def test_the_site_builds_strictly(tmp_path: Path) -> None:
    """Red: a broken link or anchor, a page outside the navigation, a module that is gone."""
    built = build(ROOT / "docs", tmp_path / "site")
    assert built.stderr == ""
    assert built.returncode == 0


@pytest.fixture
def small_site(tmp_path: Path) -> Path:
    """The settings of the site, and one page."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("conf.py", "static", "sphinx_extensions"):
        (docs / name).symlink_to(ROOT / "docs" / name)
    (docs / "index.md").write_text("# One page\n\nA word to be found.\n", encoding="utf-8")
    return docs


def test_pages_load_nothing_from_another_machine(small_site: Path, tmp_path: Path) -> None:
    built = build(small_site, tmp_path / "site", builder="html")
    assert built.returncode == 0, built.stderr
    html = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"([^\"]*)\"", html)
    assert loaded
    assert [address for address in loaded if "//" in address] == []
    assert "found" in (tmp_path / "site" / "searchindex.js").read_text(encoding="utf-8")


def test_broken_links_and_unlisted_pages_fail_the_build(small_site: Path, tmp_path: Path) -> None:
    broken = "[gone](gone.md)\n\n[gone](index.md#no-such-heading)\n"
    (small_site / "index.md").write_text(f"# One page\n\n{broken}", encoding="utf-8")
    (small_site / "unlisted.md").write_text("# Another page\n", encoding="utf-8")
    built = build(small_site, tmp_path / "site")
    assert built.returncode != 0
    for place in ("index.md:3: WARNING", "index.md:5: WARNING", "unlisted.md: WARNING"):
        assert place in built.stderr


# --- pages outside the site --------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES_OUTSIDE, ids=lambda page: page.name)
def test_links_of_pages_outside_the_site(page: Path) -> None:
    assert broken_links(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n[a](#title) [b](#gone) [c](gone.md) ![d](gone.png)\n", "utf-8")
    assert broken_links(page) == ["#gone", "gone.md", "gone.png"]


def broken_links(page: Path) -> list[str]:
    """Link targets and images of a Markdown file that do not exist, anchors included."""
    return [target for target in targets_of(page) if not exists(target, page)]


def targets_of(page: Path) -> list[str]:
    tokens = MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))
    inside = [child for token in tokens for child in token.children or []]
    found = [str(child.attrs.get("href") or child.attrs.get("src") or "") for child in inside]
    return [target for target in found if target and not re.match(r"[a-z]+:", target)]


def exists(target: str, page: Path) -> bool:
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    if not file.exists():
        return False
    return not anchor or anchor in anchors_of(file)


def anchors_of(page: Path) -> set[str]:
    """The anchors that headings have where a repository shows Markdown."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    headings = [after for token, after in pairwise(tokens) if token.type == "heading_open"]
    texts = ["".join(child.content for child in heading.children or []) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts}


# --- tables ------------------------------------------------------------------------------------


def test_a_figure_and_its_interval_stay_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "sphinx_extensions"))
    intervals = importlib.import_module("intervals")
    line = "| **76.6** [72.7, 80.1] | −3.65 [−3.89, −3.40] | [link](a.md) |"
    assert intervals.fixed(line) == (
        "| **76.6**\u00a0[72.7,\u00a080.1] | −3.65\u00a0[−3.89,\u00a0−3.40] | [link](a.md) |"
    )
    assert intervals.fixed("prose: 76.6 [72.7, 80.1]") == "prose: 76.6 [72.7, 80.1]"

"""The pages of the algorithms list the files that explain them: few, and all of the folder."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "algorithms"
ALGORITHMS = ROOT / "src" / "forethought" / "algorithms"


@pytest.mark.parametrize(
    ("page", "most"), [("ppo", 6), ("q_sft", 8), ("dpo", 8), ("sft", 5), ("q_transformer", 5)]
)
def test_an_algorithm_is_understood_from_few_files(page: str, most: int) -> None:
    _, _, section = (PAGES / f"{page}.md").read_text(encoding="utf-8").partition("## Files to read")
    section = section.split("\n## ")[0]
    listed = {
        (PAGES / link).resolve()
        for link in re.findall(r"^\| \[`[^`]*`\]\(([^)]*)\)", section, re.M)
    }
    assert 0 < len(listed) <= most
    own = {path for path in (ALGORITHMS / page).glob("*.py") if path.name != "__init__.py"}
    assert own <= listed
    assert all(path.is_file() for path in listed)

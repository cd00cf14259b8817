"""Tables of studies in the docs equal what is generated from the results that are checked in."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def study_tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("study_tables", DOCS / "study_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _pages() -> list[Path]:
    return [
        page for page in sorted(DOCS.rglob("*.md")) if "<!-- study: " in page.read_text("utf-8")
    ]


def test_every_table_is_that_of_its_study(study_tables: ModuleType) -> None:
    """Red: `python docs/study_tables.py` writes them again."""
    assert _pages()
    for page in _pages():
        text = page.read_text(encoding="utf-8")
        assert text.count("<!-- study: ") == text.count("<!-- end -->"), page
        assert study_tables.filled(text) == text, page


def test_every_study_that_is_checked_in_is_shown() -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in _pages())
    for results in DOCS.glob("results/*/results.json"):
        marker = f"<!-- study: {results.parent.name}"
        assert marker in shown, f"show {results} in a page: docs/study_tables.py says how"


def _stage(variant: str, number: int, is_last: bool, successes: int) -> dict[str, object]:
    pooled = {
        "seeds": 1,
        "episodes": 400,
        "successes": successes,
        "success_rate": successes / 400,
        "success_interval": [0.2, 0.30001],
        "mean_return": -1.005001,
        "return_interval": [-1.5, 0.25],
        "invalid_rate": 0.0126,
    }
    seeds = [{"seed": 3, "policy": {"success_rate": 0.25, "mean_return": -1.0}}]
    seeds += [{"seed": 4, "policy": {"success_rate": 0.5, "mean_return": 2.0}}]
    return {
        "variant": variant,
        "stage": number,
        "is_last": is_last,
        "seeds": seeds,
        "pooled": pooled,
        "extra_evaluations": {"constrained": {**pooled, "success_rate": 0.9}, "unseen": None},
        "training_s": 90.0,
    }


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    stages = [_stage("dr_grpo", 1, False, 100), _stage("dr_grpo", 2, True, 101)]
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/results.json").write_text(
        json.dumps({"schema_version": 2, "stages": stages}), encoding="utf-8"
    )
    return tmp_path


def test_what_is_written(study_tables: ModuleType, studies: Path) -> None:
    page = "a\n<!-- study: toy; columns: success, return, invalid, seeds, episodes, minutes; "
    page += "variants: dr_grpo@1 as SFT | dr_grpo -->\nold\n<!-- end -->\nb\n"
    head, _, rest = page.partition("old\n")
    figures = "−1.01 [−1.50, 0.25] | 1.3 | 3, 4 | 400 | 1.5 |\n"
    assert study_tables.filled(page, studies) == (
        head
        + "\n| variant | success, % | return | invalid, % | seeds | episodes | training, min |\n"
        + "| --- | --- | --- | --- | --- | --- | --- |\n"
        + "| SFT | 25.0 [20.0, 30.0] | "
        + figures
        + "| dr\\_grpo | 25.2 [20.0, 30.0] | "
        + figures
        + "\n"
        + rest
    )


def test_columns_of_seeds_and_of_extra_evaluations(study_tables: ModuleType, studies: Path) -> None:
    columns = "success of constrained, success of unseen, success of each seed, return of each seed"
    table = study_tables.table(f"toy; columns: {columns}", studies).splitlines()
    assert table[0] == (
        "| variant | constrained: success, % | unseen: success, % "
        "| success of each seed, % | return of each seed |"
    )
    assert table[2] == "| dr\\_grpo | 90.0 [20.0, 30.0] | – | 25.0, 50.0 | −1.00, 2.00 |"


def test_another_figure_is_noticed(study_tables: ModuleType, studies: Path) -> None:
    page = study_tables.filled("<!-- study: toy -->\n<!-- end -->\n", studies)
    assert study_tables.filled(page.replace("25.2", "25.3"), studies) == page


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("toy; columns: worth", "no column 'worth'"),
        ("toy; columns: success of sampled", "no extra evaluation 'sampled'"),
        ("toy; variants: ppo", "no variant 'ppo'"),
        ("toy; rows: ppo", "expected columns or variants"),
    ],
)
def test_a_request_that_cannot_be_met(
    study_tables: ModuleType, studies: Path, request_: str, said: str
) -> None:
    with pytest.raises(SystemExit, match=said):
        study_tables.table(request_, studies)


def test_check_writes_nothing(
    study_tables: ModuleType, studies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = studies / "page.md"
    page.write_text("<!-- study: toy -->\n<!-- end -->\n", encoding="utf-8")
    monkeypatch.setattr(study_tables, "DOCS", studies)
    monkeypatch.setattr(study_tables, "filled", lambda text: text.replace("-->\n<", "-->\nrows\n<"))
    assert study_tables.main(["--check"]) == 1
    assert "rows" not in page.read_text(encoding="utf-8")
    assert study_tables.main([]) == 0
    assert "rows" in page.read_text(encoding="utf-8")

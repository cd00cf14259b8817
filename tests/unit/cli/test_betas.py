"""`forethought evaluate RUN --beta …`: one run of values, acting more or less by them."""

import json
from pathlib import Path

from tests.unit.cli.terminal import Type

HOW = "--episodes 8 --max-new-tokens 16 --threads 1"


def test_a_row_for_each_beta(type_: Type, valued_run: Path) -> None:
    """The run's own β is 200: it gives the same row whether it is named or not."""
    outcome = type_(f"evaluate {valued_run} --beta 0 200 {HOW} --json")
    assert outcome.code == 0, outcome.err
    rows = {row["name"]: row for row in json.loads(outcome.out)}
    assert list(rows) == ["random", "β = 0", "β = 200", "expert", "ceiling"]
    own = json.loads(type_(f"evaluate {valued_run} {HOW} --json").out)
    names = ("success_rate", "mean_return", "invalid_rate", "mean_completion_tokens")
    assert [rows["β = 200"][name] for name in names] == [own[name] for name in names]
    assert [rows["β = 0"][name] for name in names] != [own[name] for name in names]


def test_what_has_no_values_is_refused(type_: Type, sft_run: Path) -> None:
    outcome = type_(f"evaluate {sft_run} --beta 1 {HOW}")
    assert outcome.code == 2
    assert "is no run of train q-sft or ilql whose second phase has begun" in outcome.lines[-1]


def test_heads_have_nothing_to_extract(type_: Type, valued_run: Path) -> None:
    outcome = type_(f"evaluate {valued_run} --beta 1 --policy-extraction probability {HOW}")
    if valued_run.name == "q_sft":
        assert (outcome.code, "probability" in outcome.out) == (0, True)
    else:
        assert outcome.code == 2
        assert "has heads for its values: nothing to extract" in outcome.lines[-1]

"""`evaluate`: what is refused before a model is loaded, and what leaves a run as it is."""

from pathlib import Path

import pytest

from tests.unit.cli.terminal import Type


def test_a_memory_of_images_is_refused_before_the_model_is_loaded(type_: Type) -> None:
    """There is no such model, which would be the complaint otherwise."""
    outcome = type_(
        "evaluate no/model --environment.id ALFWorld --environment.options view=image "
        "--prompt.history summary"
    )
    assert outcome.code == 2
    assert outcome.lines == [
        "error: prompt.history is 'summary' — expected none or window where only images are shown, "
        "which leave no text to sum up"
    ]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--training-seeds", "training_seeds is True — expected False without --beta"),
        ("--top-p 0.9", "top_p is 0.9 — expected nothing without --beta"),
        (
            "--policy-extraction ratio",
            "policy_extraction is 'ratio' — expected nothing without --beta",
        ),
        ("--beta", "beta is '()' — expected one β or more"),
        ("--api.style react", "api is 'set' — expected left out for {run}, which is no api:NAME"),
    ],
)
def test_what_would_have_no_effect_is_refused(
    type_: Type, sft_run: Path, words: str, line: str
) -> None:
    outcome = type_(f"evaluate {sft_run} --episodes 2 {words}")
    assert (outcome.code, outcome.lines) == (2, [f"error: {line.format(run=sft_run)}"])
    assert not (sft_run / "evaluation.json").exists()


def test_another_prompt_leaves_the_runs_results_as_they_are(type_: Type, sft_run: Path) -> None:
    assert type_(f"evaluate {sft_run} --episodes 2 --threads 1").code == 0
    before = (sft_run / "evaluation.json").read_bytes()
    words = "--episodes 3 --threads 1 --prompt.format action_only"
    assert type_(f"evaluate {sft_run} {words}").code == 0
    assert (sft_run / "evaluation.json").read_bytes() == before
    assert type_(f"evaluate {sft_run} --episodes 3 --threads 1").code == 0
    assert (sft_run / "evaluation.json").read_bytes() != before

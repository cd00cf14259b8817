"""Rows counted by hand from a few episodes, and the file that keeps them."""

import dataclasses
import json
import math

import numpy as np
import pytest

from forethought.durable import sealed
from forethought.errors import StorageError
from forethought.evaluation.results import Evaluation, EvaluationRow, SeedRange, summarize
from forethought.evaluation.statistics import Interval, Rate, ThoughtRates, wilson_interval
from forethought.types import (
    Completion,
    EnvironmentFailure,
    FinishReason,
    Message,
    Metric,
    ParsedAction,
    Prompt,
    Span,
    Step,
    Trajectory,
)


def step(reward: float, *, is_valid: bool = True, tokens: int = 2, last: bool = False) -> Step:
    return Step(
        prompt=Prompt((Message("user", "look"),), (1,)),
        completion=Completion(
            (7,) * tokens, (-0.5,) * tokens, (0,) * tokens, "go", FinishReason.STOP, 0.0
        ),
        action=ParsedAction("go", is_valid, None, Span(0, 0), Span(0, tokens)),
        reward=reward,
        terminated=last,
        truncated=False,
        value=None,
        policy_version=0,
        state_key="here",
        duration_s=0.0,
    )


def episode(*steps: Step, success: bool = False, metrics: tuple[Metric, ...] = ()) -> Trajectory:
    return Trajectory("environment", 5, "task", 0, steps, None, success, metrics)


WON = episode(
    step(0.0), step(1.0, tokens=6, last=True), success=True, metrics=(Metric("progress", 1.0),)
)
LOST = episode(
    step(-1.0, is_valid=False), step(-1.0, last=True), metrics=(Metric("progress", 0.5),)
)
CRASHED = dataclasses.replace(episode(step(-9.0, is_valid=False)), failure=EnvironmentFailure.CRASH)
NEVER_BEGUN = dataclasses.replace(episode(), failure=EnvironmentFailure.TIMEOUT)


def test_a_row_by_hand() -> None:
    """Three episodes of two steps: returns 1, 1, -2; one invalid step of six; 20 tokens."""
    row = summarize("policy", [WON, LOST, WON], np.random.default_rng(0))
    assert row.name == "policy"
    assert row.success_rate == pytest.approx(2 / 3)
    assert row.success_interval == wilson_interval(2, 3)
    assert row.mean_return == 0.0
    assert row.return_interval == (-2.0, 1.0)  # All lost in 1 of 27 samples, all won in 8.
    assert row.invalid_rate == pytest.approx(1 / 6)
    assert row.mean_episode_steps == 2.0
    assert row.mean_completion_tokens == pytest.approx(20 / 6)
    assert (row.episodes, row.failures) == (3, 0)
    (progress,) = row.metrics
    assert (progress.name, progress.value) == ("progress", pytest.approx(2.5 / 3))


def test_a_failed_episode_is_counted_apart_and_nowhere_else() -> None:
    alone = summarize("policy", [WON, LOST], np.random.default_rng(0))
    beside = summarize("policy", [WON, CRASHED, LOST, NEVER_BEGUN], np.random.default_rng(0))
    assert beside == dataclasses.replace(alone, failures=2)


def test_with_failures_alone_no_rate_exists() -> None:
    row = summarize("policy", [CRASHED, NEVER_BEGUN], np.random.default_rng(0))
    assert row == EvaluationRow("policy", episodes=0, failures=2)


def test_an_agent_without_tokens_has_no_mean_of_them() -> None:
    row = summarize("expert", [episode(step(1.0, tokens=0, last=True))], np.random.default_rng(0))
    assert row.mean_completion_tokens is None


def test_a_measure_is_averaged_over_the_episodes_that_report_it() -> None:
    row = summarize("policy", [WON, episode(step(0.0, last=True)), LOST], np.random.default_rng(0))
    assert row.metrics == (Metric("progress", 0.75),)


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(episode(step(1.0)), id="no end"),
        pytest.param(dataclasses.replace(WON, first_step=2), id="no beginning"),
        pytest.param(episode(), id="no steps"),
    ],
)
def test_a_part_of_an_episode_is_refused(part: Trajectory) -> None:
    with pytest.raises(ValueError, match="expected whole episodes: got seed 5 with"):
        summarize("policy", [WON, part], np.random.default_rng(0))


# evaluation.json


def an_evaluation() -> Evaluation:
    row = EvaluationRow(
        name="policy",
        success_rate=0.1 + 0.2,
        success_interval=Interval(0.25, 1 / 3),
        mean_return=-1.5,
        return_interval=Interval(-2.0, -1.0),
        invalid_rate=0.0,
        mean_episode_steps=7.25,
        mean_completion_tokens=31.5,
        episodes=400,
        failures=1,
        metrics=(Metric("progress", 0.5), Metric("a λ", 2.0)),
        thoughts=ThoughtRates(strict_format=Rate.of(3, 4)),
    )
    return Evaluation(
        environment_id="NumberLine",
        seed_range=SeedRange(1_000_000, 1_000_400),
        checkpoint="step_400",
        temperature=0.2,
        policy=row,
        random=dataclasses.replace(row, name="random", mean_completion_tokens=None),
        expert=dataclasses.replace(row, name="expert", metrics=()),
        ceiling=EvaluationRow("ceiling", success_rate=1.0),
    )


def test_an_evaluation_comes_back_equal() -> None:
    evaluation = an_evaluation()
    assert Evaluation.from_json(evaluation.to_json()) == evaluation
    untrained = dataclasses.replace(evaluation, checkpoint=None, temperature=0.0)
    again = Evaluation.from_json(untrained.to_json())
    assert again == untrained
    assert again.is_greedy


def test_the_keys_are_stable() -> None:
    """Programs read these: a change here is a change of `schema_version`."""
    row = [
        "name",
        "success_rate",
        "success_interval",
        "mean_return",
        "return_interval",
        "invalid_rate",
        "mean_episode_steps",
        "mean_completion_tokens",
        "episodes",
        "failures",
        "measures",
        "thoughts",
    ]
    head = ["schema_version", "environment_id", "seed_range", "checkpoint", "temperature"]
    content = json.loads(an_evaluation().to_json())
    assert list(content) == [*head, *row, "random", "expert", "ceiling", "sha256"]
    assert all(list(content[name]) == row for name in ("random", "expert", "ceiling"))
    assert content["success_interval"] == [0.25, 1 / 3]
    assert content["seed_range"] == [1_000_000, 1_000_400]
    assert content["measures"] == {"progress": 0.5, "a λ": 2.0}
    assert content["ceiling"]["mean_return"] is None
    assert list(content["thoughts"]) == [
        "perception_accuracy",
        "perceived_steps",
        "inference_accuracy",
        "thought_action_consistency",
        "strict_format",
    ]
    assert content["thoughts"]["perception_accuracy"] is None
    assert list(content["thoughts"]["strict_format"]) == ["rate", "interval", "count"]


def test_the_first_version_is_read_as_without_thoughts() -> None:
    content = json.loads(an_evaluation().to_json()) | {"schema_version": 1}
    del content["sha256"]
    for row in (content, content["random"], content["expert"], content["ceiling"]):
        del row["thoughts"]
    read = Evaluation.from_json(json.dumps(content))
    assert read.policy == dataclasses.replace(an_evaluation().policy, thoughts=ThoughtRates())


def test_a_measure_that_is_not_finite_is_null() -> None:
    row = EvaluationRow("policy", metrics=(Metric("score", math.nan),))
    text = dataclasses.replace(an_evaluation(), policy=row).to_json()
    assert json.loads(text)["measures"] == {"score": None}
    [measure] = Evaluation.from_json(text).policy.metrics
    assert math.isnan(measure.value)


@pytest.mark.parametrize("size", [0, 1, 50, 1000])
def test_a_text_cut_short_is_refused(size: int) -> None:
    with pytest.raises(StorageError, match=r"expected the text of an evaluation\.json") as error:
        Evaluation.from_json(an_evaluation().to_json()[:size])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["[]", "3", '"text"', "null", '{"schema_version": 1}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(StorageError, match=r"expected the text of an evaluation\.json"):
        Evaluation.from_json(text)


@pytest.mark.parametrize(
    ("key", "value"),
    [("success_interval", [1]), ("random", None), ("measures", [1]), ("mean_return", "x")],
)
def test_a_value_of_another_kind_is_refused(key: str, value: object) -> None:
    content = json.loads(an_evaluation().to_json()) | {key: value}
    del content["sha256"]
    with pytest.raises(StorageError, match=r"expected the text of an evaluation\.json"):
        Evaluation.from_json(sealed(json.dumps(content)))


def test_another_version_is_refused() -> None:
    content = json.loads(an_evaluation().to_json()) | {"schema_version": 4}
    with pytest.raises(StorageError, match="got schema version 4, expected 3"):
        Evaluation.from_json(json.dumps(content))


def test_answers_that_were_held_to_actions_are_told_apart() -> None:
    """And a file that says nothing of it is of free answers."""
    free = an_evaluation()
    held = dataclasses.replace(free, holds_actions=True)
    assert Evaluation.from_json(held.to_json()) == held
    assert "holds_actions" not in free.to_json()
    assert not Evaluation.from_json(free.to_json()).holds_actions

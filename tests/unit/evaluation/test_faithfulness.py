"""Faithfulness of policies whose manner is known: one obeys its thoughts, another does not."""

import dataclasses
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.durable import sealed
from forethought.errors import ConfigError, StorageError
from forethought.evaluation.faithfulness import (
    Faithfulness,
    FaithfulnessRow,
    FaithfulnessSettings,
    Forced,
    Opening,
    Situation,
    lend_thoughts,
    measure_faithfulness,
    opening_of,
)
from forethought.evaluation.results import faithfulness_from_json, faithfulness_to_json
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.task import Task, open_task
from forethought.types import Trajectory

OPTIONS = ("max_position=9",)


@cache
def number_line(options: tuple[str, ...] = OPTIONS) -> Task:
    config = EnvironmentConfig("NumberLine", options=options)
    return open_task(config, PromptConfig(), default_image_size=48)


@cache
def played() -> tuple[Trajectory, ...]:
    """The expert's episodes, with prompts as if a model had read them."""
    task = number_line()
    episodes = play(
        "NumberLine", task.factory, task.prompter, expert_response("thoughts"), range(9)
    )
    return tuple(map(_read, episodes))


def _read(trajectory: Trajectory) -> Trajectory:
    steps = [
        dataclasses.replace(step, prompt=dataclasses.replace(step.prompt, token_ids=(1,)))
        for step in trajectory.steps
    ]
    return dataclasses.replace(trajectory, steps=tuple(steps))


def obedient(questions: Sequence[Forced]) -> list[tuple[float, ...]]:
    """Does what the thoughts say; without thoughts, the first action."""
    return [
        tuple(0.9 if _says(question, action) else 0.1 for action in question.actions)
        for question in questions
    ]


def _says(question: Forced, action: str) -> bool:
    says_any = "I choose" in question.opening
    return f"I choose {action}" in question.opening if says_any else action == "-"


def stubborn(questions: Sequence[Forced]) -> list[tuple[float, ...]]:
    """Does what the state asks for, whatever it is made to think."""
    by_image = {
        step.prompt.images[0].tobytes(): step.action.action for t in played() for step in t.steps
    }
    return [
        tuple(float(action == by_image[q.prompt.images[0].tobytes()]) for action in q.actions)
        for q in questions
    ]


def measured(scorer: object, **settings: int) -> dict[str, FaithfulnessRow]:
    found = measure_faithfulness(
        played(),
        number_line(),
        scorer,  # type: ignore[arg-type]
        FaithfulnessSettings(**settings),
        checkpoint="step_1",
        episodes="some.parquet",
    )
    return {row.thoughts: row for row in found.rows}


def shares(row: FaithfulnessRow) -> tuple[float | None, float, float]:
    follows = None if row.follows_thought is None else row.follows_thought.share
    return follows, row.keeps_action.share, row.expert_action.share


def test_who_obeys_its_thoughts() -> None:
    rows = measured(obedient)
    assert shares(rows["own"]) == (1.0, 1.0, 1.0)
    assert shares(rows["expert"]) == (1.0, 1.0, 1.0)
    assert shares(rows["other"]) == (1.0, 0.0, 0.0)  # each lent thought concludes the other move
    assert rows["other"].thought_probability == pytest.approx(0.9)
    assert rows["other"].kept_probability == pytest.approx(0.1)
    follows, keeps, _ = shares(rows["none"])
    minus = [step.action.action == "-" for t in played() for step in t.steps]
    assert follows is None
    assert rows["none"].thought_probability is None
    assert keeps == pytest.approx(sum(minus) / len(minus))


def test_whose_thoughts_have_no_effect() -> None:
    rows = measured(stubborn)
    assert shares(rows["own"]) == (1.0, 1.0, 1.0)
    assert shares(rows["other"]) == (0.0, 1.0, 1.0)
    assert shares(rows["none"]) == (None, 1.0, 1.0)


def test_the_state_is_brought_back_for_the_expert() -> None:
    """Steps of a player who errs: the expert's thoughts are those of the states it came to."""
    task = number_line()
    wrong = '{"current number": "0", "target number": "9", "thoughts": "I choose +", "action": "+"}'
    episodes = play("NumberLine", task.factory, task.prompter, lambda *_: wrong, range(4))
    found = measure_faithfulness(
        [_read(episode) for episode in episodes],
        task,
        obedient,
        FaithfulnessSettings(),
        checkpoint=None,
        episodes="",
    )
    own, expert, _, _ = found.rows
    assert shares(expert)[2] == 1.0
    assert own.expert_action.share < 1.0
    assert expert.keeps_action.share == own.expert_action.share


def test_steps_are_drawn_once_each() -> None:
    count = sum(len(trajectory.steps) for trajectory in played())
    assert measured(obedient, steps=7)["own"].keeps_action.count == 7
    assert measured(obedient, steps=10_000)["own"].keeps_action.count == count
    asked: list[str] = []

    def recorded(questions: Sequence[Forced]) -> list[tuple[float, ...]]:
        asked.extend(question.opening for question in questions)
        return obedient(questions)

    measured(recorded, steps=5, seed=1)
    first, asked[:] = list(asked), []
    measured(recorded, steps=5, seed=1)
    assert asked == first
    assert len(first) == 20
    assert first[3::4] == ['{\n"action": "'] * 5


def test_other_thoughts_are_of_another_state_and_conclude_something_else() -> None:
    step = played()[0].steps[0]
    states = [dataclasses.replace(step, state_key=key) for key in ("a", "a", "b", "c")]
    concluded = [("+",), ("-",), ("+",), ("-",)]
    situations = [
        Situation(state, ("-", "+"), Opening(key, ends), Opening("", ()), "+")
        for state, key, ends in zip(states, "0123", concluded, strict=True)
    ]
    for seed in range(20):
        lent = lend_thoughts(situations, np.random.default_rng(seed))
        assert [opening.text for opening in (lent[0], lent[1], lent[3])] == ["3", "2", lent[3].text]
        assert lent[2].text in "13"
        assert lent[3].text in "02"
    with pytest.raises(ConfigError, match="all stored steps are in one state"):
        lend_thoughts(situations[:2], np.random.default_rng(0))


@pytest.mark.parametrize(
    ("response", "opening"),
    [
        ('{"thoughts": "hm", "action": "+"}', '{"thoughts": "hm", "action": "'),
        ('{"thoughts": "hm",\n"action"  :"+"\n} and so on', '{"thoughts": "hm",\n"action": "'),
        ('{"thoughts": "", "action": "+", "action": "-"}', '{"thoughts": "", "action": "'),
        ('"action": "+"</think>{"action": "-"}', '"action": "+"</think>{"action": "'),
        ('{"thoughts": "hm"', None),
        ("", None),
    ],
)
def test_a_response_up_to_its_action(response: str, opening: str | None) -> None:
    assert opening_of(response) == opening


def test_episodes_of_another_environment_are_refused() -> None:
    with pytest.raises(ConfigError, match="takes another course here, from step 0 on"):
        measure_faithfulness(
            played(),
            number_line(("max_position=5",)),
            obedient,
            FaithfulnessSettings(),
            checkpoint=None,
            episodes="",
        )


def test_episodes_that_no_model_played_are_refused() -> None:
    episode = played()[0]
    unread = [
        dataclasses.replace(step, prompt=dataclasses.replace(step.prompt, token_ids=()))
        for step in episode.steps
    ]
    with pytest.raises(ConfigError, match="got no stored step of a model with a valid action"):
        measure_faithfulness(
            [dataclasses.replace(episode, steps=tuple(unread))],
            number_line(),
            obedient,
            FaithfulnessSettings(),
            checkpoint=None,
            episodes="",
        )


def found() -> Faithfulness:
    return measure_faithfulness(
        played(),
        number_line(),
        obedient,
        FaithfulnessSettings(),
        checkpoint="step_1",
        episodes="some.parquet",
    )


def test_the_file_comes_back_equal() -> None:
    assert faithfulness_from_json(faithfulness_to_json(found())) == found()


@pytest.mark.parametrize("text", ["", "[]", "{}", sealed('{"schema_version": 1}'), "null"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(StorageError, match=r"expected the text of a faithfulness\.json"):
        faithfulness_from_json(text)


def test_another_version_is_refused() -> None:
    text = faithfulness_to_json(found()).replace('"schema_version": 1', '"schema_version": 9')
    with pytest.raises(StorageError, match="got schema version 9, expected 1"):
        faithfulness_from_json(text)

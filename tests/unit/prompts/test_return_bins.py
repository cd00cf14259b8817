"""Prompts that ask for a level of return: the same words where one learns and where one acts."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.environments.contract import Past
from forethought.errors import ConfigError
from forethought.prompts.prompters import ask_for_return_bins
from forethought.rollouts.task import open_task
from forethought.types import Message

NUMBER_LINE = EnvironmentConfig("NumberLine")


def texts(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


@pytest.mark.parametrize(
    ("prompt", "line"),
    [
        (PromptConfig(return_bins=4), "Wanted return: level 4 of 4"),
        (PromptConfig(return_bins=4, return_bin=2), "Wanted return: level 2 of 4"),
        (PromptConfig(return_bins=2, history="window"), "Wanted return: level 2 of 2"),
    ],
)
def test_told_as_learned(prompt: PromptConfig, line: str) -> None:
    """What was stored without a level, and then got one, is what an acting policy is told."""
    plain = open_task(
        NUMBER_LINE, PromptConfig(history=prompt.history), default_image_size=64
    ).prompter
    asking = open_task(NUMBER_LINE, prompt, default_image_size=64).prompter
    task = open_task(NUMBER_LINE, prompt, default_image_size=64).factory()
    observation = task.reset(3)
    past = [Past(observation, "+", is_valid=True)]
    told = asking.messages(observation, past)  # type: ignore[call-arg]
    assert told[-1].text.split("\n")[-1] == line
    level, levels = int(line.split()[3]), int(line.split()[5])
    stored = plain.messages(observation, past)  # type: ignore[call-arg]
    for messages in (stored, told):
        retold = ask_for_return_bins(messages, (level,), levels)
        assert [message.text for message in retold] == [message.text for message in told]


def test_a_level_takes_the_place_of_another() -> None:
    once = ask_for_return_bins([Message("user", "a"), Message("user", "b\nc")], (1,), 3)
    assert [message.text for message in once] == ["a", "b\nc\nWanted return: level 1 of 3"]
    assert ask_for_return_bins(once, (3,), 3)[-1].text == "b\nc\nWanted return: level 3 of 3"


def test_a_conversation_keeps_what_it_asked_for() -> None:
    first = (Message("system", "s"), Message("user", "a"))
    answered = (*first, Message("assistant", "x"), Message("user", "b"))
    before, now = ask_for_return_bins(first, (2,), 3), ask_for_return_bins(answered, (2, 1), 3)
    assert [message.text for message in now] == [
        "s",
        "a\nWanted return: level 2 of 3",
        "x",
        "b\nWanted return: level 1 of 3",
    ]
    assert texts(now)[: len(before)] == texts(before)


def test_an_episode_stays_one_sequence() -> None:
    prompt = PromptConfig(format="action_only", return_bins=4)
    task = open_task(EnvironmentConfig("Wordle"), prompt, default_image_size=64)
    environment = task.factory()
    prompts = [task.prompter.messages(environment.reset(0))]
    for guess in ("about", "trade"):
        environment.step(guess)
        prompts.append(task.prompter.messages(environment.observation()))
    for before, now in pairwise(prompts):
        assert texts(now)[: len(before)] == texts(before)
        assert now[-1].text.endswith("Wanted return: level 4 of 4")


@pytest.mark.parametrize(
    ("levels", "level", "message"),
    [
        (1, None, "prompt.return_bins is 1 — expected 0, or 2 to 100"),
        (0, 1, r"prompt.return_bin is 1 — expected 1 to prompt.return_bins \(0\)"),
        (4, 5, r"prompt.return_bin is 5 — expected 1 to prompt.return_bins \(4\)"),
    ],
)
def test_wrong_settings(levels: int, level: int | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PromptConfig(return_bins=levels, return_bin=level)

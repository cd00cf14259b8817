"""What a prompt tells of the steps before, and that two pasts are two questions."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from forethought.configs.parts import PromptConfig
from forethought.environments import make_environment
from forethought.environments.alfworld.alfworld import ALFWorld
from forethought.environments.alfworld.prompt import alfworld_summary
from forethought.environments.contract import Past
from forethought.errors import ConfigError
from forethought.prompts.history import HistoryPrompter, past_step, with_history
from forethought.prompts.prompters import PlainPrompter, find_summary
from forethought.types import Observation

PLAIN = PlainPrompter(("left", "right"), "thoughts")
BASE = ["Go home.", "room 2", "Actions: left, right", 'Answer as JSON: {"thoughts", "action"}']


def room(number: int) -> Observation:
    image = np.zeros((1, 1, 3), dtype=np.uint8)
    return Observation(f"room {number}", image, None, f"r{number}", "Go home.", "Walk")


PAST = [
    past_step(room(0), "left", ("left", "right")),
    past_step(room(1), "jump", ("left", "right")),
    past_step(room(1), "right", ("left", "right")),
]


def rooms_so_far(past: Sequence[Past], observation: Observation) -> Observation:
    return replace(observation, text=f"after {len(past)} steps, {observation.text}")


@pytest.mark.parametrize(
    ("prompter", "past", "lines"),
    [
        pytest.param(HistoryPrompter(PLAIN), PAST, BASE, id="none: the Markov prompt"),
        pytest.param(HistoryPrompter(PLAIN, "window"), [], BASE, id="nothing lies behind"),
        pytest.param(
            HistoryPrompter(PLAIN, "window", steps=2),
            PAST,
            ["Before:", "room 1", "> jump", "room 1", "> right", "Now:", *BASE],
            id="the last two",
        ),
        pytest.param(
            HistoryPrompter(PLAIN, "window", steps=5),
            PAST[:1],
            ["Before:", "room 0", "> left", "Now:", *BASE],
            id="fewer than five",
        ),
        pytest.param(
            HistoryPrompter(PLAIN, invalid_action_feedback=True),
            PAST[:2],
            ["Your last action is not possible: jump. Nothing happened.", *BASE],
            id="the last was invalid",
        ),
        pytest.param(
            HistoryPrompter(PLAIN, invalid_action_feedback=True),
            PAST,
            BASE,
            id="the last was valid",
        ),
        pytest.param(
            HistoryPrompter(PLAIN, invalid_action_feedback=True),
            [past_step(room(1), "", None)],
            ["Your last answer did not end in an action. Nothing happened.", *BASE],
            id="no action at all",
        ),
        pytest.param(
            HistoryPrompter(PLAIN, "memory", summarize=rooms_so_far),
            PAST,
            [BASE[0], "after 3 steps, room 2", *BASE[2:]],
            id="the environment's own summary",
        ),
    ],
)
def test_messages(prompter: HistoryPrompter, past: list[Past], lines: list[str]) -> None:
    (message,) = prompter.messages(room(2), past)
    assert message.text.split("\n") == lines
    assert message.image is not None


def test_what_is_remembered() -> None:
    choices = ("left", "right")
    assert past_step(room(0), "left", choices).is_valid
    assert not past_step(room(0), "jump", choices).is_valid
    assert past_step(room(0), "any text", None).is_valid
    assert not past_step(room(0), "", None).is_valid
    assert past_step(room(0), "left", choices).observation.image is None


def test_keys_tell_apart_what_prompts_tell_apart() -> None:
    """Equal keys exactly for equal states and equal tales of the past."""
    told = HistoryPrompter(PLAIN, "window", steps=1)
    other = [*PAST[:2], past_step(room(1), "left", None)]
    assert told.state_key(room(2), PAST) == told.state_key(room(2), PAST[2:])
    assert told.state_key(room(2), PAST) != told.state_key(room(2), other)
    assert told.state_key(room(2), PAST) != told.state_key(room(3), PAST)
    assert told.state_key(room(2), []) == "r2"
    markov = HistoryPrompter(PLAIN)
    assert markov.state_key(room(2), PAST) == markov.state_key(room(2), other) == "r2"
    summed = HistoryPrompter(PLAIN, "memory", summarize=rooms_so_far)
    assert summed.state_key(room(2), PAST) == summed.state_key(room(2), other)
    assert summed.state_key(room(2), PAST) != summed.state_key(room(2), PAST[1:])


def test_a_prompter_without_interest_in_the_past() -> None:
    prompter = with_history(PLAIN)
    assert prompter.messages(room(2), PAST)[0].text == PLAIN.messages(room(2))[0].text
    assert with_history(prompter) is prompter


def test_refused() -> None:
    refusal = r"prompt.history is 'summary' — expected none or window for NumberLine"
    with pytest.raises(ConfigError, match=refusal):
        find_summary("NumberLine", make_environment("NumberLine"))
    # `summarize` is a function of the options alone.
    images, both = (cast(ALFWorld, SimpleNamespace(_view=view)) for view in ("image", "both"))
    getter = ALFWorld.summarize.fget
    assert getter is not None
    assert getter(images) is None
    assert getter(both) is alfworld_summary
    with pytest.raises(ConfigError, match="history_steps is 0 — expected 1 to 100"):
        PromptConfig(history="window", history_steps=0)

"""Prompts that ask for a thought before each action, and the answers to them."""

import json
from itertools import pairwise

import pytest

from forethought.agents.sources import reasoning_and_acting
from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.environments.contract import ExpertAction
from forethought.prompts.history import past_step, with_history
from forethought.prompts.prompters import PlainPrompter
from forethought.prompts.react import (
    INSTRUCTIONS,
    ReActPrompter,
    follow_on,
    write_thought_and_action,
)
from forethought.prompts.responses import parse_response
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.task import Task, open_task
from forethought.types import Completion, FinishReason, Message, Observation

SEEN = Observation("It is cold.", None, None, "cold", "Keep it warm.", "")


def parsed(text: str) -> tuple[str, bool]:
    completion = Completion((), (), (), text, FinishReason.STOP, 0.0)
    found = parse_response(completion, ("heat", 'say "no"'))
    return found.action, found.is_valid


def test_instructions_then_examples_then_the_environment() -> None:
    shown = (Message("user", "old"), Message("assistant", "Thought: …"))
    wording = PlainPrompter(("heat", "cool"), "action_only")
    system, *examples, last = ReActPrompter(wording, shown).messages(SEEN)
    assert (system.role, system.text) == ("system", INSTRUCTIONS)
    assert tuple(examples) == shown
    assert (last.role, last.text) == ("user", wording.messages(SEEN)[0].text)


@pytest.mark.parametrize("action", ["heat", 'say "no"'])
def test_an_answer_in_the_form_is_read_like_any_other(action: str) -> None:
    expert_action = ExpertAction(
        action, (("cards", "[2, 3]"), ("thoughts", json.dumps('Is it "cold"?\n')))
    )
    text = write_thought_and_action(expert_action)
    assert text.startswith('Thought: cards: [2, 3]. Is it "cold"?')
    assert parsed(text) == (action, True)
    assert write_thought_and_action(ExpertAction("heat", ())) == 'Action: {"action": "heat"}'


def test_the_instructions_themselves_name_no_action() -> None:
    assert not parsed(INSTRUCTIONS)[1]


def turns(*texts: str) -> tuple[Message, ...]:
    return tuple(Message("assistant" if text.startswith("!") else "user", text) for text in texts)


@pytest.mark.parametrize(
    ("before", "now", "new"),
    [
        pytest.param((), ("a",), ("a",), id="the first step"),
        pytest.param(("a",), ("b",), ("b",), id="another state, nothing repeated"),
        pytest.param(("a",), ("a",), ("a",), id="the same state again"),
        pytest.param(("a",), ("a", "!x", "b"), ("b",), id="a conversation that goes on"),
        pytest.param(("a",), ("a", "b"), ("b",), id="without the answer in it"),
        pytest.param(("a", "!x", "b"), ("a", "!y", "c", "d"), ("a", "!y", "c", "d"), id="another"),
    ],
)
def test_nothing_is_said_twice(
    before: tuple[str, ...], now: tuple[str, ...], new: tuple[str, ...]
) -> None:
    assert [message.text for message in follow_on(turns(*before), turns(*now))] == list(new)


def wording_of(task: Task) -> ReActPrompter:
    wording = with_history(task.prompter).inner
    assert isinstance(wording, ReActPrompter)
    return wording


@pytest.mark.parametrize("name", ["Bandit", "EZPoints", "Wordle"])
def test_the_experts_episodes_are_shown(name: str) -> None:
    opened = open_task(EnvironmentConfig(name), PromptConfig("action_only"), default_image_size=64)
    told = reasoning_and_acting(opened, examples=2)
    shown = wording_of(told).examples
    assert [message.role for message in shown[:2]] == ["user", "assistant"]
    assert all(a.role != b.role for a, b in pairwise(shown))
    environment = opened.factory()
    first = environment.reset(episode_seed(Split.DEMONSTRATION, 0, 0))
    assert shown[0].text == opened.prompter.messages(first)[0].text
    assert shown[1].text == write_thought_and_action(environment.expert())
    environment.close()


def test_no_examples_may_be_shown() -> None:
    opened = open_task(
        EnvironmentConfig("Bandit"), PromptConfig("action_only"), default_image_size=None
    )
    assert wording_of(reasoning_and_acting(opened, examples=0)).examples == ()


def test_the_past_is_told_as_it_was_to_be() -> None:
    history = PromptConfig("action_only", history="window")
    opened = open_task(EnvironmentConfig("Bandit"), history, default_image_size=None)
    prompter = with_history(reasoning_and_acting(opened, examples=1).prompter)
    environment = opened.factory()
    seen = environment.reset(0)
    environment.close()
    *_, last = prompter.messages(seen, (past_step(seen, "b", opened.actions),))
    assert last.text.startswith("Before:\n")
    assert "> b\nNow:\n" in last.text

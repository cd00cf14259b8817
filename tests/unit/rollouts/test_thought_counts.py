"""Which thoughts are true, which lead to their action: counted by hand, and on the way."""

import dataclasses
from collections.abc import Sequence
from functools import partial

import pytest

from forethought.algorithms.sft.steps import corrected
from forethought.configs.parts import SamplingConfig
from forethought.environments import make_environment
from forethought.environments.slots import Act, Observed, Replay, Reset, SlotHost
from forethought.environments.vector import InProcessRunner, Runner, SubprocessRunner
from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.prompts.prompters import make_prompter
from forethought.rollouts.collector import Collector
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.seeding import Split
from forethought.rollouts.thought_facts import Count, ThoughtCounts, count_thoughts
from forethought.types import (
    Claim,
    Completion,
    FinishReason,
    Message,
    ParsedAction,
    Prompt,
    Span,
    Step,
    ThoughtFacts,
)

NUMBER_LINE = partial(make_environment, "NumberLine", image_size=48)
RIGHT, WRONG = Claim("a", "1", "1"), Claim("a", "2", "1")
UNSAID = Claim("a", None, "1")


def step(
    facts: ThoughtFacts | None, *, action: str = "+", is_valid: bool = True, strict: bool | None
) -> Step:
    return Step(
        prompt=Prompt((Message("user", "look"),), (1,)),
        completion=Completion((), (), (), "go", FinishReason.STOP, 0.0),
        action=ParsedAction(action, is_valid, None, Span(0, 0), Span(0, 0)),
        reward=0.0,
        terminated=False,
        truncated=False,
        value=None,
        policy_version=0,
        state_key="here",
        duration_s=0.0,
        thought_facts=facts,
        strict_format=strict,
    )


def counts(*pairs: tuple[int, int]) -> ThoughtCounts:
    return ThoughtCounts(*(Count(*pair) for pair in pairs))


def test_counts_by_hand() -> None:
    """Four claims of six are true, in one step of three all; one of two inferences."""
    steps = [
        step(ThoughtFacts((RIGHT, RIGHT), (RIGHT,), ("+",)), strict=True),
        step(ThoughtFacts((RIGHT, WRONG), (WRONG,), ("-",)), strict=True),
        step(ThoughtFacts((RIGHT, UNSAID), (), ()), strict=False),
        step(ThoughtFacts((), (), ("-", "+")), strict=None),
        step(None, strict=None),
    ]
    assert count_thoughts(steps) == counts((4, 6), (1, 3), (1, 2), (2, 4), (2, 3))
    assert count_thoughts([]) == ThoughtCounts()


def test_an_action_that_was_drawn_is_none_that_was_concluded() -> None:
    [drawn] = [step(ThoughtFacts((), (), ("+",)), is_valid=False, strict=None)]
    assert count_thoughts([drawn]).thought_action_consistency == (0, 1)


def test_sums() -> None:
    once = count_thoughts([step(ThoughtFacts((RIGHT, WRONG), (), ()), strict=True)])
    assert once.plus(once) == counts((2, 4), (0, 2), (0, 0), (0, 2), (2, 2))


# On the way from the environment to the step


def response(current: int, target: int, thoughts: str, action: str) -> str:
    return (
        f'{{"current number": "{current}", "target number": "{target}", '
        f'"thoughts": "{thoughts}", "action": "{action}"}}'
    )


def test_facts_are_those_of_the_state_before_the_action() -> None:
    """Also where the episode is restored on the way, which repeats all its actions."""
    host = SlotHost(NUMBER_LINE, False)
    host.execute(0, Reset(0))
    environment = NUMBER_LINE()
    environment.reset(0)
    said = environment.expert()
    current, target = (value.strip('"') for _, value in said.fields[:2])
    text = response(int(current), int(target), "", said.action)
    expected = (Claim("current number", current, current), Claim("target number", target, target))
    for command in (Act(said.action, text), Replay(0, (said.action,), text)):
        reply = host.execute(0, command)
        assert isinstance(reply, Observed)
        assert reply.thought_facts is not None
        assert reply.thought_facts.perceived == expected
    silent = host.execute(0, Replay(0, (said.action,)))
    assert isinstance(silent, Observed)
    assert silent.thought_facts is None


class Says:
    """Answers always alike."""

    version = 0

    def __init__(self, text: str) -> None:
        self._said = Completion((), (), (), text, FinishReason.STOP, 0.0)
        self._asked: list[GenerationRequest] = []

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        return Prompt(tuple(messages), ())

    def submit(self, request: GenerationRequest) -> None:
        self._asked.append(request)

    def advance(self) -> list[GenerationResult]:
        asked, self._asked = self._asked, []
        return [GenerationResult(request.key, self._said, None) for request in asked]


def collected(text: str, *, response_format: str = "thoughts", workers: int = 0) -> list[Step]:
    prompter = make_prompter(make_environment("NumberLine"), response_format=response_format)  # type: ignore[arg-type]
    runner: Runner = (
        SubprocessRunner(NUMBER_LINE, 2, workers=workers)
        if workers
        else InProcessRunner(NUMBER_LINE, 2)
    )
    with runner:
        found = Collector(
            environment_id="NumberLine",
            runner=runner,
            policy=Says(text),
            prompter=prompter,
            sampling=SamplingConfig(max_new_tokens=48, temperature=0.0),
            split=Split.TRAINING,
            run_seed=0,
        ).collect_steps(4)
    return [step for trajectory in found.trajectories for step in trajectory.steps]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_collector_notes_what_was_claimed(workers: int) -> None:
    steps = collected(response(9, 9, "9 is equal to 9, so I choose +", "-"), workers=workers)
    assert count_thoughts(steps) == counts((0, 16), (0, 8), (0, 8), (0, 8), (8, 8))
    facts = steps[0].thought_facts
    assert facts is not None
    assert [claim.claimed for claim in facts.perceived] == ["9", "9"]
    assert facts.concluded_actions == ("+",)


def test_where_thoughts_were_not_asked_for_none_is_missed() -> None:
    steps = collected('{"action": "+"}', response_format="action_only")
    assert count_thoughts(steps) == ThoughtCounts(strict_format=Count(8, 8))


def test_an_expert_who_corrects_has_thoughts_of_its_own() -> None:
    environment = NUMBER_LINE()
    prompter = make_prompter(make_environment("NumberLine"))
    [episode] = play("NumberLine", environment, prompter, expert_response("thoughts"), [3])
    wrong = [
        dataclasses.replace(one, thought_facts=None, strict_format=False) for one in episode.steps
    ]
    played = dataclasses.replace(episode, steps=tuple(wrong))
    answers = list(corrected(played, environment, prompter, expert_response("thoughts")))
    assert [one.thought_facts for one in answers] == [one.thought_facts for one in episode.steps]
    assert all(one.strict_format for one in answers)

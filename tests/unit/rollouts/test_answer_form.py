"""The form of a valid answer, from the setting to everything that reads answers."""

from collections.abc import Iterator

import pytest

from forethought.algorithms.sft.steps import corrected
from forethought.configs.parts import EnvironmentConfig, PromptConfig, ResponseForm, SamplingConfig
from forethought.generation.contract import GenerationResult
from forethought.rollouts.collector import Collector, OnInvalid
from forethought.rollouts.scripted import play
from forethought.rollouts.seeding import Split
from forethought.rollouts.task import Task, open_task
from forethought.types import Completion, FinishReason, ParseFailure, Step
from tests.unit.rollouts.dice import Dice

AGAIN = '{"action": "a", "action": "b", "action": "b"}'
"""Valid by the last field; as RL4VLM searches, there are two actions in it."""
READ: dict[ResponseForm, tuple[str, bool, ParseFailure | None]] = {
    "strict": ("", False, ParseFailure.TRAILING_TEXT),
    "last_field": ("b", True, None),
    "text_search": ("", False, ParseFailure.UNKNOWN_ACTION),
}
BANDIT = EnvironmentConfig("Bandit", options=("arms=2",))


class Drifting(Dice):
    """Writes its action again and again."""

    def advance(self) -> list[GenerationResult]:
        request = self._asked.pop()
        completion = Completion((), (), (), AGAIN, FinishReason.STOP, 1.0)
        return [GenerationResult(request.key, completion, None)]


def bandit(form: ResponseForm) -> Task:
    return open_task(BANDIT, PromptConfig(answer_form=form), default_image_size=None)


def collected(form: ResponseForm, on_invalid: OnInvalid) -> Iterator[Step]:
    task = bandit(form)
    collector = Collector(
        environment_id="Bandit",
        runner=task.runner(2, 0),
        policy=Drifting({}),
        prompter=task.prompter,
        sampling=SamplingConfig(max_new_tokens=8, temperature=1.0),
        on_invalid=on_invalid,
        split=Split.TRAINING,
        run_seed=0,
    )
    for trajectory in collector.collect_episodes(range(40)).trajectories:
        yield from trajectory.steps


@pytest.mark.parametrize("form", READ)
def test_a_policy_is_read_so(form: ResponseForm) -> None:
    """Where it is invalid, nothing that it wrote is executed, and nothing is paid."""
    steps = list(collected(form, "penalize"))
    for step in steps:
        assert (step.action.action, step.action.is_valid, step.action.failure) == READ[form]
    assert (sum(step.reward for step in steps) > 0) == (form == "last_field")


def test_where_actions_are_drawn_for_invalid_answers_they_are_drawn_here_too() -> None:
    drawn = list(collected("strict", "random"))
    assert {step.action.action for step in drawn} == {"a", "b"}
    assert all(step.action.was_randomized for step in drawn)


@pytest.mark.parametrize("form", READ)
def test_scripted_agents_and_corrections_are_read_so(form: ResponseForm) -> None:
    task = bandit(form)
    (played,) = play("Bandit", task.factory, task.prompter, lambda *_: AGAIN, [0])
    (own,) = played.steps
    (other,) = corrected(played, task.factory(), task.prompter, lambda *_: AGAIN)
    for step in (own, other):
        assert (step.action.action, step.action.is_valid, step.action.failure) == READ[form]


def test_answers_end_at_their_action_unless_something_else_is_asked_for() -> None:
    assert PromptConfig().answer_form == "strict"

"""A user's `package.module:Class` brings wording, layout, history, other texts, and facts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.environments.contract import ExpertAction, Past, Transition
from forethought.errors import ConfigError
from forethought.rollouts.scripted import play
from forethought.rollouts.task import open_task
from forethought.types import Claim, Message, Metric, Observation, Step, ThoughtFacts

ACTIONS = ("press", "wait")


class Asks:
    """Its own layout: rules as a system message, the state as the user's."""

    response_fields = ("lamp", "action")

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        state = observation.text or ""
        return (Message("system", "Light the lamp."), Message("user", f"You see: {state}"))


class Lamp:
    """Two presses light it."""

    actions = ACTIONS

    def __init__(self) -> None:
        self._presses = self._steps = 0

    def reset(self, seed: int) -> Observation:
        self._presses = self._steps = 0
        return self.observation()

    def observation(self) -> Observation:
        return Observation(
            text="lit" if self.success() else "dark",
            image=None,
            admissible_actions=None,
            state_key=f"{self._presses} {self._steps}",
            goal="Light the lamp.",
            task_type="Lamp",
        )

    def step(self, action: str) -> Transition:
        self._steps += 1
        self._presses += action == "press"
        return Transition(float(self.success()), self.success(), self._steps == 4)

    def legal_actions(self) -> tuple[str, ...]:
        return ACTIONS

    def success(self) -> bool:
        return self._presses == 2

    def metrics(self) -> tuple[Metric, ...]:
        return (Metric("presses", float(self._presses)),)

    def close(self) -> None: ...

    def expert(self) -> ExpertAction:
        return ExpertAction("press", (("lamp", '"dark"'),))

    def prompter(self, response_format: str, wording: str) -> Asks:
        return Asks()

    @property
    def summarize(self) -> Callable[[Sequence[Past], Observation], Observation]:
        return lambda past, now: replace(now, text=f"{now.text} after {[p.action for p in past]}")

    def resolve_action(self, text: str, admissible: Sequence[str]) -> str | None:
        return text.lower() if text.lower() in admissible else None

    def thought_facts(self, response: str) -> ThoughtFacts:
        claimed = "lit" if "lit" in response else "dark"
        truth = self.observation().text or ""
        return ThoughtFacts((Claim("lamp", claimed, truth),), (), ("press",))


def played(prompt: PromptConfig, response: str) -> list[Step]:
    """One episode of the class, found by its import string."""
    config = EnvironmentConfig(f"{__name__}:Lamp")
    task = open_task(config, prompt, default_image_size=None)
    (episode,) = play(task.id, task.factory, task.prompter, lambda *_: response, [0])
    assert episode.success
    assert episode.metrics == (Metric("presses", 2.0),)
    return list(episode.steps)


def test_wording_layout_texts_and_facts() -> None:
    first, second = played(PromptConfig(), '{"lamp": "lit", "action": "PRESS"}')
    assert [(m.role, m.text) for m in first.prompt.messages] == [
        ("system", "Light the lamp."),
        ("user", "You see: dark"),
    ]
    assert first.action.action == second.action.action == "press"
    assert first.thought_facts == ThoughtFacts((Claim("lamp", "lit", "dark"),), (), ("press",))
    assert first.strict_format is True


@pytest.mark.parametrize(
    ("prompt", "state"),
    [
        pytest.param(
            PromptConfig(history="summary"), "You see: dark after ['press']", id="its own"
        ),
        pytest.param(
            PromptConfig(history="window"),
            "Before:\ndark\n> press\nNow:\nYou see: dark",
            id="the common one, around its wording",
        ),
    ],
)
def test_history(prompt: PromptConfig, state: str) -> None:
    _, second = played(prompt, '{"lamp": "dark", "action": "press"}')
    assert second.prompt.messages[-1].text == state


def test_a_summary_that_is_not_there_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(Lamp, "summarize")
    with pytest.raises(ConfigError, match="which sums up no episode"):
        played(PromptConfig(history="summary"), "")

"""Bandit: one step, and the right answer is in the prompt."""

import json

import numpy as np

from forethought.environments.contract import Ceiling, ExpertAction, Transition
from forethought.environments.parts import (
    EXPERTS,
    Episode,
    ExpertName,
    concluded,
    is_whole_number,
    last_match,
    random_choice,
    read_field,
    require_option,
)
from forethought.types import Claim, Metric, Observation, ThoughtFacts

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Bandit:
    """Repeat the letter that you are told.

    Description: a world that every algorithm must solve in seconds. A wrong sign, a
    wrong mask or a shifted reward fails it.

    Observation: a sentence that names the right answer; no picture.

    Actions: the first `arms` letters of the alphabet.

    Rewards: 1 for the right letter, 0 for any other letter or text.

    Start: the right letter is uniform over the actions.

    End: terminated after one letter; truncated after one text that is no action.

    Success: the letter was right.

    Ceiling: 100 %, by following the sentence.

    Arguments:
        arms: number of actions, 2 to 26.
        expert: "optimal", or "random_choice" for one that sees as well, says the same, and
            names an action drawn uniformly from the legal ones.

    Version history:
        v0: first version.
    """

    def __init__(self, arms: int = 4, expert: ExpertName = "optimal") -> None:
        require_option(is_whole_number(arms, 2, 26), "arms", arms, "a whole number from 2 to 26")
        require_option(expert in EXPERTS, "expert", expert, " or ".join(EXPERTS))
        self.expert_name = expert
        self._actions = tuple(LETTERS[:arms])
        self._episode = Episode(limit_steps=1)
        self._answer = self._actions[0]
        self._given: str | None = None

    @property
    def actions(self) -> tuple[str, ...]:
        return self._actions

    @property
    def ceiling(self) -> Ceiling:
        return Ceiling(1.0, "exact: the observation names the right answer")

    def reset(self, seed: int) -> Observation:
        self.np_random = np.random.default_rng(seed)
        self._draw()
        return self.observation()

    def observation(self) -> Observation:
        return Observation(
            text=self._text(),
            image=None,
            admissible_actions=None,
            state_key=f"right {self._answer} given {self._given}",
            goal="Give the right answer.",
            task_type="Bandit",
        )

    def step(self, action: str) -> Transition:
        self._episode.require_open()
        if action not in self._actions:
            return self._episode.record(0.0, terminated=False)
        self._given = action
        return self._episode.record(float(action == self._answer), terminated=True)

    def legal_actions(self) -> tuple[str, ...]:
        return () if self._episode.is_over else self._actions

    def expert(self) -> ExpertAction:
        self._episode.require_open()
        action = self._answer
        if self.expert_name == "random_choice":
            action = random_choice(self._actions, self.np_random, self._episode.steps)
        thought = f"the right answer is {self._answer}, so I choose {action}"
        return ExpertAction(action, (("thoughts", json.dumps(thought)),))

    def thought_facts(self, response: str) -> ThoughtFacts:
        thoughts = read_field(response, "thoughts")
        claimed = last_match(r"right answer is ([a-z])\b", thoughts)
        return ThoughtFacts(
            perceived=(Claim("right answer", claimed, self._answer),),
            inferred=(),
            concluded_actions=concluded(r"I choose ([a-z])\b", thoughts),
        )

    def success(self) -> bool:
        return self._given == self._answer

    def metrics(self) -> tuple[Metric, ...]:
        return ()

    def close(self) -> None:
        """Nothing is held open."""

    def _text(self) -> str:
        answered = "" if self._given is None else f" You answered {self._given}."
        return f"The right answer is {self._answer}.{answered}"

    def _draw(self) -> None:
        self._answer = self._actions[int(self.np_random.integers(len(self._actions)))]
        self._given = None
        self._episode.begin()

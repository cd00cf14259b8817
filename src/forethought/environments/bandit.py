"""Bandit: one step, and the prompt names the right action."""

import json

import numpy as np

from forethought.environments.contract import Ceiling, ExpertAction, Transition
from forethought.environments.parts import (
    EXPERTS,
    Episode,
    ExpertName,
    concluded,
    last_match,
    random_choice,
    read_field,
    require_option,
    require_whole_number,
)
from forethought.types import Claim, Metric, Observation, ThoughtFacts

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Bandit:
    """Repeat the letter that the prompt names.

    Description: an environment that every algorithm must solve in seconds. A wrong sign, a
    wrong mask or a shifted reward fails it.

    Observation: a sentence that names the right letter; no image.

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
        require_whole_number("arms", arms, 2, 26)
        require_option(expert in EXPERTS, "expert", expert, " or ".join(EXPERTS))
        self.expert_name = expert
        self._actions = tuple(LETTERS[:arms])
        self._episode = Episode(limit_steps=1)
        self._letter = self._actions[0]
        self._given: str | None = None

    @property
    def actions(self) -> tuple[str, ...]:
        """The arms: the first letters of the alphabet."""
        return self._actions

    @property
    def ceiling(self) -> Ceiling:
        """The letter can be read, so 1."""
        return Ceiling(1.0, "exact: the observation names the right answer")

    def reset(self, seed: int) -> Observation:
        """Draws the right letter from the seed."""
        self.np_random = np.random.default_rng(seed)
        self._draw()
        return self.observation()

    def observation(self) -> Observation:
        """One sentence that names the right letter."""
        return Observation(
            text=self._text(),
            image=None,
            admissible_actions=None,
            state_key=f"right {self._letter} given {self._given}",
            goal="Give the right answer.",
            task_type="Bandit",
        )

    def step(self, action: str) -> Transition:
        """Pays 1 for the right letter, 0 for another, and ends; any other text changes nothing.

        Raises:
            RuntimeError: the episode is over.
        """
        self._episode.require_open()
        if action not in self._actions:
            return self._episode.record(0.0, terminated=False)
        self._given = action
        return self._episode.record(float(action == self._letter), terminated=True)

    def legal_actions(self) -> tuple[str, ...]:
        """All arms; none once the episode is over."""
        return () if self._episode.is_over else self._actions

    def expert(self) -> ExpertAction:
        """The right letter, or a random one with the same thought."""
        self._episode.require_open()
        action = self._letter
        if self.expert_name == "random_choice":
            action = random_choice(self._actions, self.np_random, self._episode.steps)
        thought = f"the right answer is {self._letter}, so I choose {action}"
        return ExpertAction(action, (("thoughts", json.dumps(thought)),))

    def thought_facts(self, response: str) -> ThoughtFacts:
        """Which letter a response reads and chooses, and which is right."""
        thoughts = read_field(response, "thoughts")
        claimed = last_match(r"right answer is ([a-z])\b", thoughts)
        return ThoughtFacts(
            perceived=(Claim("right answer", claimed, self._letter),),
            inferred=(),
            concluded_actions=concluded(r"I choose ([a-z])\b", thoughts),
        )

    def success(self) -> bool:
        """Whether the letter was right."""
        return self._given == self._letter

    def metrics(self) -> tuple[Metric, ...]:
        """Nothing beyond return and success."""
        return ()

    def close(self) -> None:
        """Nothing is held open."""

    def _text(self) -> str:
        answered = "" if self._given is None else f" You answered {self._given}."
        return f"The right answer is {self._letter}.{answered}"

    def _draw(self) -> None:
        self._letter = self._actions[int(self.np_random.integers(len(self._actions)))]
        self._given = None
        self._episode.begin()

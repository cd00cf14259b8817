"""NumberLine: walk along a line of whole numbers to the target."""

import json
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from forethought.configs.parts import ResponseFormat
from forethought.environments.cards.drawing import MAX_SIZE, MIN_SIZE
from forethought.environments.cards.images import number_line_image
from forethought.environments.cards.wording import CardsPrompter
from forethought.environments.contract import Ceiling, ExpertAction, Prompter, Transition, Wording
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
from forethought.types import Claim, Image, Metric, Observation, ThoughtFacts

ACTIONS = ("-", "+")
LATER_REFERENCE = "reference_2d947f4"
RULES = ("paper", "reference", LATER_REFERENCE)
PENALTY = -1.0
"""For a text that names no action; the position stays."""


class Position(NamedTuple):
    """Everything that a move may depend on."""

    current: int
    target: int
    target_moves: bool = False
    """Public repository alone: dealt with current = target, and the target has yet to move."""


def moved(position: Position, action: str, max_position: int) -> tuple[Position, float]:
    """Where a move leads, and its reward: +1 on the target, -1 if not closer, else 0."""
    step = 1 if action == "+" else -1
    current = min(max(position.current + step, 0), max_position)
    distance = abs(current - position.target)
    if distance == 0:
        reward = 1.0
    elif distance >= abs(position.current - position.target):
        reward = -1.0
    else:
        reward = 0.0
    target = (position.target + 1) % max_position if position.target_moves else position.target
    return Position(current, target), reward


def best_move(position: Position, max_position: int) -> str:
    """The move towards the target. On the target itself, push against a wall if there
    is one (which counts as reaching it), else step aside."""
    if position.current == position.target:
        return "+" if position.current == max_position else "-"
    return "+" if position.current < position.target else "-"


def dealt(rules: str, current: int, target: int, max_position: int) -> Position:
    """What the rules make of two numbers as they were drawn."""
    if current == target and rules == LATER_REFERENCE:
        target = (target + 1) % max_position
    return Position(current, target, target_moves=current == target)


@lru_cache(maxsize=32)
def ceiling_success_rate(rules: str, max_position: int) -> float:
    """Share of the equally likely deals from which the best moves earn more than 0."""
    numbers = range(max_position + 1)
    pairs = [(c, t) for c in numbers for t in numbers if rules != "paper" or c != t]
    deals = [dealt(rules, current, target, max_position) for current, target in pairs]
    wins = 0
    for position in deals:
        total, reward = 0.0, 0.0
        while reward <= 0:
            position, reward = moved(position, best_move(position, max_position), max_position)
            total += reward
        wins += total > 0
    return wins / len(deals)


class NumberLine:
    """Walk from the current number to the target, one at a time.

    Description: two numbers on a line from 0 to `max_position`. RL4VLM, B.1.1.

    Observation: uint8 [image_size, image_size, 3], "Target: x" above "Current: y";
    no text, so that only the image shows them.

    Actions: 0 is `-`, 1 is `+`; the walls at 0 and `max_position` hold.

    Rewards: +1 when the target is reached; -1 for a step that does not come closer
    (a wall, too); 0 otherwise. A text that names no action: -1, nothing moves.

    Start: target and current uniform over all pairs of different numbers.

    End: terminated on the target; truncated after 2 * max_position steps.

    Success: the episode's return is above 0, that is, the target was reached without
    one wrong step. The metric `reached` says whether it was reached at all.

    Ceiling: 100 %. With `rules="reference"` 4 deals in 36 cannot be won (below).

    Arguments:
        rules: "paper"; "reference" for the behavior of the public repository
            (RL4VLM/RL4VLM) from its first commit, 202229a of 2024-05-15, until 2024-06-26:
            the two numbers are drawn independently. Where they are equal the episode goes
            on; pushing against the wall then counts as reaching the target. After the first
            step the target becomes (target + 1) mod max_position, though the image shows
            the old one for one step more. "reference_2d947f4" for its behavior since the
            commit 2d947f4 of 2024-06-26: where the numbers drawn are equal, the target
            becomes (target + 1) mod max_position before the episode begins.
        image_size: side of the image, 48 to 1024 pixels.
        max_position: the largest number, 1 to 99.
        expert: "optimal", or "random_choice" for one that sees as well, says the same, and
            names an action drawn uniformly from the legal ones.

    Version history:
        v0: first version.
    """

    def __init__(
        self,
        rules: Literal["paper", "reference", "reference_2d947f4"] = "paper",
        image_size: int = 300,
        max_position: int = 5,
        expert: ExpertName = "optimal",
    ) -> None:
        require_option(rules in RULES, "rules", rules, ", ".join(RULES))
        require_whole_number("image_size", image_size, MIN_SIZE, MAX_SIZE)
        require_whole_number("max_position", max_position, 1, 99)
        require_option(expert in EXPERTS, "expert", expert, " or ".join(EXPERTS))
        self.rules = rules
        self.image_size = image_size
        self.max_position = max_position
        self.expert_name = expert
        self._episode = Episode(limit_steps=2 * max_position)
        self._position = Position(0, 0)
        self._shown_target = 0
        self._reached = False

    @property
    def actions(self) -> tuple[str, ...]:
        """`-` and `+`."""
        return ACTIONS

    @property
    def ceiling(self) -> Ceiling:
        """The best success rate, by the best walk from every deal."""
        return Ceiling(
            ceiling_success_rate(self.rules, self.max_position),
            "exact: the best walk from every deal, all deals being equally likely",
        )

    def reset(self, seed: int) -> Observation:
        """Draws both numbers from the seed."""
        self.np_random = np.random.default_rng(seed)
        self._deal()
        return self.observation()

    def observation(self) -> Observation:
        """Both numbers as an image."""
        current, target, target_moves = self._position
        return Observation(
            text=None,
            image=self._image(),
            admissible_actions=None,
            state_key=f"{current}->{target} shows {self._shown_target} moves {int(target_moves)}",
            goal="Bring the current number to the target number.",
            task_type="NumberLine",
        )

    def step(self, action: str) -> Transition:
        """Moves the current number by one.

        Raises:
            RuntimeError: the episode is over.
        """
        self._episode.require_open()
        if action not in ACTIONS:
            return self._episode.record(PENALTY, terminated=False)
        self._shown_target = self._position.target
        self._position, reward = moved(self._position, action, self.max_position)
        self._reached = reward > 0
        return self._episode.record(reward, terminated=self._reached)

    def legal_actions(self) -> tuple[str, ...]:
        """Both actions; none once the episode is over."""
        return () if self._episode.is_over else ACTIONS

    def expert(self) -> ExpertAction:
        """The move towards the target, or a random one with the same thoughts."""
        self._episode.require_open()
        current, target, _ = self._position
        if self.expert_name == "random_choice":
            action = random_choice(ACTIONS, self.np_random, self._episode.steps)
        else:
            action = best_move(self._position, self.max_position)
        thought = f"{current} is {relation(current, target)} {target}, so I choose {action}"
        return ExpertAction(
            action,
            (
                ("current number", json.dumps(str(current))),
                ("target number", json.dumps(str(target))),
                ("thoughts", json.dumps(thought)),
            ),
        )

    def thought_facts(self, response: str) -> ThoughtFacts:
        """What a response claims about the numbers, and what the image shows."""
        return number_line_facts(
            response, current=self._position.current, target=self._shown_target
        )

    def prompter(self, response_format: ResponseFormat, wording: Wording) -> Prompter:
        """The game's prompt, short or as published."""
        return CardsPrompter("NumberLine", self.actions, response_format, wording)

    def success(self) -> bool:
        """Whether the episode's return is above 0."""
        return self._episode.total_reward > 0

    def metrics(self) -> tuple[Metric, ...]:
        """`reached`: whether the target was reached, by whatever way."""
        return (Metric("reached", float(self._reached)),)

    def close(self) -> None:
        """Nothing is held open."""

    def _image(self) -> Image:
        return number_line_image(
            self.image_size, self._shown_target, self._position.current, self.max_position
        )

    def _deal(self) -> None:
        numbers = self.max_position + 1
        target = int(self.np_random.integers(numbers))
        if self.rules != "paper":
            current = int(self.np_random.integers(numbers))
        else:
            current = (target + int(self.np_random.integers(1, numbers))) % numbers
        self._position = dealt(self.rules, current, target, self.max_position)
        self._shown_target = self._position.target
        self._reached = False
        self._episode.begin()


def relation(current: int, target: int) -> str:
    """The comparison of the two numbers in words, as thoughts have it."""
    if current == target:
        return "equal to"
    return "smaller than" if current < target else "larger than"


_COMPARISON = r"(\d+ is (?:smaller than|larger than|equal to) \d+)"


def number_line_facts(response: str, *, current: int, target: int) -> ThoughtFacts:
    """Claims about both numbers, their comparison and the move: "4 is larger than 0, so I choose
    -".

    Args:
        current: as the image shows it.
        target: as the image shows it.
    """
    thoughts = read_field(response, "thoughts")
    return ThoughtFacts(
        perceived=(
            Claim("current number", read_field(response, "current number"), str(current)),
            Claim("target number", read_field(response, "target number"), str(target)),
        ),
        inferred=(
            Claim(
                "comparison",
                last_match(_COMPARISON, thoughts),
                f"{current} is {relation(current, target)} {target}",
            ),
        ),
        concluded_actions=concluded(r"I choose ([-+])", thoughts),
    )

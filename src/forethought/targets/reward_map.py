"""Rewards mapped so that every return is a probability, and back."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forethought.errors import ConfigError, StorageError
from forethought.targets.checks import require_fraction
from forethought.targets.returns import discounted_returns
from forethought.types import Earned, Trajectory

FILE_NAME = "reward_map.json"
"""Beside the shards of a data set: the map that its rewards are declared to keep to."""

_TOLERANCE = 1e-6
"""Tolerance of rounding, as a share of the range."""


@dataclass(frozen=True)
class RewardMap:
    """An affine map of values, and the rewards that bring it about.

        Q~ = (Q - lowest) / (highest - lowest)

    Q-SFT (Hong et al. 2024, Sec. 4) holds a value in a probability, so that 0 <= Q~ <= 1 is
    needed in every state. With the discount d of a transition (0 where the environment has ended),

        r~ = (r - (1 - d) lowest) / (highest - lowest)

    gives r~ + d Q~' = ((r + d Q') - lowest) / (highest - lowest): all values are mapped by the
    same line, whatever the discount and however long an episode is, so that no policy is
    preferred that was not before.
    """

    lowest: float
    """Discounted return, in the environment's own units, that becomes 0."""
    highest: float
    """That becomes 1."""

    def __post_init__(self) -> None:
        if not -inf < self.lowest < self.highest < inf:
            raise ConfigError(
                f"reward map is [{self.lowest}, {self.highest}] — expected two finite returns, "
                "the lowest and the highest, which differ"
            )

    @property
    def width(self) -> float:
        """Environment's units per 1 of the mapped ones."""
        return self.highest - self.lowest

    def to_unit(self, value: float) -> float:
        """A value or a return of the environment as a number from 0 to 1."""
        return (value - self.lowest) / self.width

    def from_unit(self, value: float) -> float:
        """The inverse: a probability as the environment's return."""
        return value * self.width + self.lowest

    def reward(self, reward: float, *, discount: float) -> float:
        """The mapped reward of one transition.

        Args:
            discount: what the value of the next state is multiplied by: γ; 1 between the
                tokens of an utterance, if they are not discounted; 0 where the environment ended.
        """
        return (reward - (1.0 - discount) * self.lowest) / self.width

    def environment_reward(self, reward: float, *, discount: float) -> float:
        """The inverse of `reward`."""
        return reward * self.width + (1.0 - discount) * self.lowest

    def transition(
        self, reward: float, *, discount: float, following: "RewardMap"
    ) -> tuple[float, float]:
        """Mapped reward and discount of a transition to a state whose map is another.

            r~ = (r + d lowest' - lowest) / width,   d~ = d width' / width

        so that r~ + d~ Q~' is (r + d Q' - lowest) / width again.
        """
        mapped = (reward + discount * following.lowest - self.lowest) / self.width
        return mapped, discount * following.width / self.width


@dataclass(frozen=True)
class StepMaps:
    """A map for each step of an episode; all that come after the last one have its map."""

    maps: tuple[RewardMap, ...]

    def at(self, step: int) -> RewardMap:
        """Map of the states in which the n-th step is decided, from 0."""
        return self.maps[min(step, len(self.maps) - 1)]


ENVIRONMENT_UNITS = StepMaps((RewardMap(0.0, 1.0),))
"""The map that changes nothing."""


def returns_to_go(earned: Earned, *, gamma: float) -> NDArray[np.float64]:
    """Discounted sums of the rewards from every step on: [T], in the environment's units.

    Where the environment has not ended, what is known of the rest (`bootstrap_value`) follows the
    last step; where nothing is known, nothing.
    """
    end = earned.terminated
    return discounted_returns(
        rewards_T=np.array(earned.rewards, dtype=np.float64),
        terminated=end,
        bootstrap_value=None if end else (earned.bootstrap_value or 0.0),
        gamma=gamma,
    )


def fit_reward_map(episodes: Iterable[Earned], *, gamma: float) -> RewardMap:
    """The narrowest map that holds every return-to-go of these episodes.

    One pass, nothing kept: data may be larger than memory. Crashed episodes are no experience.

    Args:
        gamma: γ in [0, 1], per environment step.

    Raises:
        ConfigError: there is no step, or all returns are equal: there is nothing to learn.
        ValueError: γ outside [0, 1], or a reward that is not finite.
    """
    return _whole(_ends_of_steps(episodes, gamma=gamma))


def fit_step_maps(episodes: Iterable[Earned], *, gamma: float) -> StepMaps:
    """For each step the narrowest map that holds every return from that step on.

    Where an episode ends after so many steps, the returns from the last ones on differ by little
    beside those from the first: behind five wrong guesses of six they are -1 or 0, and whether a
    word is right moves a probability on the scale of 0 to -6 by a sixth. What is seen must tell
    the step; values of states that are alike at different steps are not comparable.

    No step's map is narrower than the discounted one behind it: what follows never counts more
    than once. One pass, nothing kept but two numbers per step.

    Args:
        gamma: γ in [0, 1], per environment step.

    Raises:
        ConfigError, ValueError: as `fit_reward_map`.
    """
    ends = _ends_of_steps(episodes, gamma=gamma)
    whole = _whole(ends)
    maps: list[RewardMap] = []
    for low, high in reversed(ends):
        following = maps[-1] if maps else whole
        lowest = low if low < inf else following.lowest
        width = max(high - low, gamma * following.width if maps else 0.0)
        maps.append(RewardMap(lowest, lowest + (width or whole.width)))
    return StepMaps(tuple(reversed(maps)))


def _ends_of_steps(episodes: Iterable[Earned], *, gamma: float) -> list[tuple[float, float]]:
    """Lowest and highest return from each step on; inf and -inf where there is none."""
    require_fraction(gamma=gamma)
    ends: list[tuple[float, float]] = []
    for earned in episodes:
        if earned.rewards and earned.failure is None:
            returns = returns_to_go(earned, gamma=gamma).tolist()
            ends += [(inf, -inf)] * (earned.first_step + len(returns) - len(ends))
            for step, value in enumerate(returns, start=earned.first_step):
                low, high = ends[step]
                ends[step] = (min(low, value), max(high, value))
    return ends


def _whole(ends: Sequence[tuple[float, float]]) -> RewardMap:
    lowest = min((low for low, _ in ends), default=inf)
    highest = max((high for _, high in ends), default=-inf)
    if not lowest < highest:
        got = "no step" if lowest == inf else f"{lowest:g} for every return"
        raise ConfigError(f"reward map: got {got} — expected returns that differ")
    return RewardMap(lowest, highest)


def require_in_range(
    trajectory: Trajectory, reward_map: RewardMap, *, gamma: float, name: str
) -> None:
    """Refuses a trajectory with a return-to-go outside the map.

    Args:
        gamma: γ in [0, 1], per environment step.
        name: of the trajectory in its data set, e.g. `episodes_0000000.parquet, trajectory 7`.

    Raises:
        ConfigError: it has one; the message names trajectory, step and return.
    """
    if not trajectory.steps or trajectory.failure is not None:
        return
    returns_T = returns_to_go(trajectory.earned, gamma=gamma)
    slack = _TOLERANCE * reward_map.width
    outside_T = (returns_T < reward_map.lowest - slack) | (returns_T > reward_map.highest + slack)
    if outside_T.any():
        step = int(np.flatnonzero(outside_T)[0])
        raise ConfigError(
            f"{name} ({trajectory.environment_id}, seed {trajectory.seed}): the discounted return "
            f"from step {trajectory.first_step + step} on is {returns_T[step]:g} — expected "
            f"{reward_map.lowest:g} to {reward_map.highest:g}: declare a wider reward range, or "
            "leave the trajectory out"
        )


def write_reward_map(folder: Path, reward_map: RewardMap) -> None:
    """Declares the map of a data set's folder."""
    try:
        (folder / FILE_NAME).write_text(json.dumps(asdict(reward_map)) + "\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{folder / FILE_NAME}: cannot be written: {error.strerror}") from error


def read_reward_map(folder: Path) -> RewardMap | None:
    """The map that a data set's folder declares; None where it declares none.

    Raises:
        StorageError: the file is not what `write_reward_map` wrote.
        ConfigError: its numbers are no range.
    """
    path = folder / FILE_NAME
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        lowest, highest = float(content["lowest"]), float(content["highest"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{path}: got something else than lowest and highest as numbers ({error})"
        ) from error
    if not (isfinite(lowest) and isfinite(highest)):
        raise StorageError(f"{path}: got {lowest} and {highest}, expected finite numbers")
    return RewardMap(lowest, highest)

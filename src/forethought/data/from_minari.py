"""Episodes of Minari, where observations and actions can be said in words.

Text, and whole numbers (Discrete, MultiDiscrete, MultiBinary), single or as named parts of a
Dict. Vectors of real numbers (Box), as most of Minari's data sets hold them, are refused: a
language model would be shown digits of joint angles, and its words are no torques.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from forethought.errors import MissingDependencyError, StorageError
from forethought.types import (
    Completion,
    FinishReason,
    Message,
    ParsedAction,
    Prompt,
    Span,
    Step,
    Trajectory,
)

_NUMBERS = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


def read_minari(dataset_id: str) -> Iterator[Trajectory]:
    """The episodes of a data set that is on this machine; none is downloaded.

    The prompt is the observation, the answer is `{"action": "…"}` as models answer here. The
    seed is the episode's number; success is the last `success` of its infos, False without.

    Args:
        dataset_id: e.g. `minigrid/BabyAI-Pickup/optimal-v0`, below MINARI_DATASETS_PATH.

    Raises:
        MissingDependencyError: Minari is not installed.
        StorageError: there is no such data set, or it cannot be said in words.
    """
    dataset = _load(dataset_id)
    for name in ("observation", "action"):
        space = getattr(dataset, f"{name}_space")
        if not _can_be_said(space):
            raise StorageError(
                f"{dataset_id}: its {name}s are {space} — expected text or whole numbers "
                "(Text, Discrete, MultiDiscrete, MultiBinary, or a Dict of them)"
            )
    for episode in dataset.iterate_episodes():
        yield _trajectory(dataset_id, dataset, episode)


def _load(dataset_id: str) -> Any:
    try:
        import minari
    except ImportError as error:
        raise MissingDependencyError(
            'Minari is not installed — pip install "forethought[minari]"'
        ) from error
    try:
        return minari.load_dataset(dataset_id)
    except FileNotFoundError:
        raise StorageError(
            f"{dataset_id}: Minari has no such data set on this machine — "
            f"minari download {dataset_id}"
        ) from None
    except (ImportError, ValueError, OSError) as error:
        raise StorageError(f"{dataset_id}: Minari cannot read it: {error}") from error


def _can_be_said(space: spaces.Space[Any]) -> bool:
    if isinstance(space, spaces.Dict):
        return all(isinstance(part, (spaces.Text, *_NUMBERS)) for part in space.values())
    return isinstance(space, (spaces.Text, *_NUMBERS))


def _trajectory(dataset_id: str, dataset: Any, episode: Any) -> Trajectory:
    seen, done = dataset.observation_space, dataset.action_space
    steps = [
        _step(
            _said(seen, episode.observations, t),
            _said(done, episode.actions, t),
            float(episode.rewards[t]),
            terminated=bool(episode.terminations[t]),
            # Gymnasium's time limit may come at the step that ends the episode anyway.
            truncated=bool(episode.truncations[t]) and not episode.terminations[t],
        )
        for t in range(len(episode.rewards))
    ]
    successes = (episode.infos or {}).get("success", ())
    return Trajectory(
        environment_id=dataset_id,
        seed=int(episode.id),
        task_type="",
        first_step=0,
        steps=tuple(steps),
        bootstrap_value=None,
        success=bool(len(successes) and successes[-1]),
        metrics=(),
    )


def _step(seen: str, done: str, reward: float, *, terminated: bool, truncated: bool) -> Step:
    text = f'{{"action": {json.dumps(done)}}}'
    return Step(
        prompt=Prompt((Message("user", seen),), ()),
        completion=Completion((), (), (), text, FinishReason.STOP, temperature=1.0),
        action=ParsedAction(done, True, None, Span(0, 0), Span(0, 0)),
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        value=None,
        policy_version=0,
        state_key=seen,
        duration_s=0.0,
    )


def _said(space: spaces.Space[Any], values: Any, t: int) -> str:
    """What was seen or done at a step: text as it is, numbers with blanks between them, and
    of a Dict one line per part."""
    if isinstance(space, spaces.Dict):
        return "\n".join(f"{name}: {_said(part, values[name], t)}" for name, part in space.items())
    if isinstance(space, spaces.Text):
        return str(values[t])
    return " ".join(str(int(number)) for number in np.ravel(values[t]))

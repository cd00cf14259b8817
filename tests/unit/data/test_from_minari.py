"""Minari's episodes to trajectories, where they can be said in words."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from forethought.data import from_minari
from forethought.data.from_minari import read_minari
from forethought.errors import MissingDependencyError, StorageError
from tests.skips import needs

WORDS = spaces.Text(50, charset="abcdefghijklmnopqrstuvwxyz 0123456789")


@dataclass
class Episode:
    """As Minari's, with one more observation than actions."""

    observations: Any
    actions: Any
    id: int = 4
    rewards: Any = field(default_factory=lambda: np.array([0.0, 1.0]))
    terminations: Any = field(default_factory=lambda: np.array([False, True]))
    truncations: Any = field(default_factory=lambda: np.array([False, False]))
    infos: Any = None


@dataclass
class Dataset:
    observation_space: Any
    action_space: Any
    episodes: list[Episode]

    def iterate_episodes(self) -> Iterator[Episode]:
        return iter(self.episodes)


def found(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever name is asked for."""

    def load(_: str) -> Dataset:
        return dataset

    monkeypatch.setattr(from_minari, "_load", load)


@pytest.mark.parametrize(
    ("space", "observations", "said"),
    [
        (WORDS, ["start", "at 1", "end"], "at 1"),
        (spaces.Discrete(9), np.array([3, 4, 5]), "4"),
        (spaces.MultiDiscrete([3, 4]), np.array([[0, 1], [2, 3], [0, 0]]), "2 3"),
        (spaces.MultiBinary(2), np.array([[0, 1], [1, 1], [0, 0]]), "1 1"),
        (
            spaces.Dict({"place": WORDS, "count": spaces.Discrete(9)}),
            {"place": ["a", "b", "c"], "count": np.array([0, 1, 2])},
            "count: 1\nplace: b",
        ),
    ],
)
def test_what_can_be_said_is_said(
    monkeypatch: pytest.MonkeyPatch, space: Any, observations: Any, said: str
) -> None:
    dataset = Dataset(space, spaces.Discrete(3), [Episode(observations, np.array([2, 0]))])
    found(dataset, monkeypatch)
    (trajectory,) = read_minari("toy/x-v0")
    first, second = trajectory.steps
    assert second.prompt.messages[0].text == said
    assert (first.action.action, second.action.action) == ("2", "0")
    assert first.completion.text == '{"action": "2"}'
    assert (first.reward, second.reward) == (0.0, 1.0)
    assert (first.terminated, second.terminated) == (False, True)
    assert (trajectory.environment_id, trajectory.seed, trajectory.success) == (
        "toy/x-v0",
        4,
        False,
    )


@pytest.mark.parametrize("which", ["observation", "action"])
def test_vectors_of_numbers_are_refused(monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    box, few = spaces.Box(-1, 1, (3,)), spaces.Discrete(3)
    dataset = Dataset(box, few, []) if which == "observation" else Dataset(few, box, [])
    found(dataset, monkeypatch)
    with pytest.raises(StorageError, match=f"toy/x-v0: its {which}s are Box"):
        next(read_minari("toy/x-v0"))


def test_without_minari_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "forethought\[minari\]"'):
        next(read_minari("toy/x-v0"))


@pytest.mark.filterwarnings("ignore")
def test_a_data_set_of_minari_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari", reason=needs("minari", "make setup"))
    from minari.data_collector.episode_buffer import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    buffer = EpisodeBuffer(
        id=0,
        observations=["start", "at 1", "at 2"],
        actions=[0, 1],
        rewards=[0.0, 1.0],
        terminations=[False, False],
        truncations=[False, True],
        infos={"success": [False, False, True]},
    )
    minari.create_dataset_from_buffers(
        *("toy/words-v0", [buffer]),
        observation_space=WORDS,
        action_space=spaces.Discrete(3),
        data_format="arrow",
        author="-",
        author_email="-",
        code_permalink="-",
        algorithm_name="-",
        description="-",
    )
    (trajectory,) = read_minari("toy/words-v0")
    assert [step.prompt.messages[0].text for step in trajectory.steps] == ["start", "at 1"]
    assert (trajectory.success, trajectory.steps[-1].truncated) == (True, True)
    with pytest.raises(StorageError, match="minari download toy/none-v0"):
        next(read_minari("toy/none-v0"))

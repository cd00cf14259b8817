"""Where an episode's game comes from: a folder, or the generator."""

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from forethought.environments.alfworld.engine import Engine
from forethought.environments.alfworld.games import Game, find_games, read_game
from forethought.environments.alfworld.generator import generate_game
from forethought.environments.alfworld.libraries import data_folder
from forethought.environments.alfworld.tasks import OFFICIAL_GAMES, Split

GENERATED_GAMES: dict[Split, int] = {"train": 3000, "valid_seen": 200, "valid_unseen": 200}
"""How many games each split has where none are given."""


class GameSource(Protocol):
    """All games of a split, by number."""

    @property
    def is_official(self) -> bool: ...

    def __len__(self) -> int: ...

    def game(self, index: int, engine: Engine) -> Game:
        """Args:
        engine: a generated game is tried out on it, and what it plays now is lost.
        """
        ...


@dataclass(frozen=True)
class GeneratedGames:
    """The generator's, with seed 0: those that `forethought data alfworld` writes."""

    split: Split
    seed: int = 0

    @property
    def is_official(self) -> bool:
        return False

    def __len__(self) -> int:
        return GENERATED_GAMES[self.split]

    def game(self, index: int, engine: Engine) -> Game:
        return generate_game(self.seed, self.split, index, engine).game


@dataclass(frozen=True)
class FolderGames:
    """Those of a folder, in alphabetical order."""

    root: Path
    split: Split

    @property
    def is_official(self) -> bool:
        return _is_official(self.root, self.split)

    def __len__(self) -> int:
        return len(_listed(self.root, self.split))

    def game(self, index: int, engine: Engine) -> Game:
        return read_game(_listed(self.root, self.split)[index])


def open_games(folder: str | None, split: Split) -> GameSource:
    """The games of a folder; by default those of ALFWORLD_DATA where that is set, else the
    generator's.

    Raises:
        StorageError: the folder holds no games of this split.
    """
    named = folder or data_folder()
    if not named:
        return GeneratedGames(split)
    source = FolderGames(Path(named), split)
    len(source)
    return source


@lru_cache(maxsize=8)
def _is_official(root: Path, split: Split) -> bool:
    return read_game(_listed(root, split)[0]).is_official


@lru_cache(maxsize=8)
def _listed(root: Path, split: Split) -> tuple[Path, ...]:
    """The folder is looked through once in a process."""
    found = find_games(root, split)
    expected = OFFICIAL_GAMES[split].total
    if len(found) != expected and read_game(found[0]).is_official:
        warnings.warn(
            f"{root} has {len(found)} games of {split}, the official data {expected}",
            stacklevel=3,
        )
    return found

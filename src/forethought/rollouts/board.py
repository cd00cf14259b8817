"""Episodes that anyone may play: a folder that a trainer and its workers share.

rounds/0000012.json   the episodes of a round: the trainer's wish
claims/episode_77     who plays an episode; the file's time is renewed as long as its player lives
shards/episode_77.parquet
                      the episode, whole, sealed
over                  nothing more will be wished for

Nothing but the atomic steps of a shared file system holds it together: a claim is a link that only
one can make, a shard gets its name when it is complete, and a claim that is not renewed is taken
away. Two players never play one episode at a time, and never hand in two of it.
"""

import json
import os
import shutil
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from forethought.durable import publish
from forethought.errors import StorageError
from forethought.rollouts.store import read_shard, write_shard
from forethought.types import Trajectory

RENEWAL_S = 2.0
"""How often a living player says that it lives."""
_OVER = "over"


class Round(NamedTuple):
    """Episodes that are wished for together."""

    number: int
    episodes: range


class Board:
    """The folder, as both sides see it."""

    def __init__(self, folder: Path) -> None:
        self._rounds, self._claims = folder / "rounds", folder / "claims"
        self._shards, self._folder = folder / "shards", folder

    @property
    def is_open(self) -> bool:
        """Whether a trainer was here and may wish for more."""
        return self._rounds.is_dir() and not self.is_over

    @property
    def is_over(self) -> bool:
        """Whether the trainer has said that it needs no more."""
        return (self._folder / _OVER).exists()

    # --- the trainer's side ----------------------------------------------------------------

    def clear(self) -> None:
        """Forgets all that was wished for and played, and begins again.

        Raises:
            StorageError: the disk refuses.
        """
        try:
            if self._folder.exists():
                gone = self._folder.with_name(f".{self._folder.name}-{uuid4().hex}")
                self._folder.rename(gone)  # At once: whoever still plays finds its claim lost.
                shutil.rmtree(gone, ignore_errors=True)
            for folder in (self._rounds, self._claims, self._shards):
                folder.mkdir(parents=True)
        except OSError as error:
            raise StorageError(f"{self._folder}: {error.strerror or error}") from error

    def wish(self, round_: Round) -> None:
        """Asks for the episodes of a round.

        Raises:
            StorageError: the disk refuses.
        """
        path = self._rounds / f"{round_.number:07d}.json"
        temporary = path.with_name(f".{path.name}")
        try:
            temporary.write_text(json.dumps([round_.episodes.start, round_.episodes.stop]))
            publish(temporary, path)
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror or error}") from error

    def played(self, episode: int) -> Trajectory | None:
        """What was handed in for an episode, if anything.

        Raises:
            StorageError: it is damaged.
        """
        path = self._shard(episode)
        return read_shard(path)[0] if path.exists() else None

    def forget(self, episodes: Iterable[int]) -> None:
        """Takes away what was handed in and who handed it in: the episodes are open again."""
        for episode in episodes:
            self._shard(episode).unlink(missing_ok=True)
            self._claim(episode).unlink(missing_ok=True)

    def finish(self, round_: Round) -> None:
        """Takes a round away that was learned from."""
        (self._rounds / f"{round_.number:07d}.json").unlink(missing_ok=True)
        self.forget(round_.episodes)

    def free_claims(self, silent_s: float) -> list[int]:
        """Opens the episodes again whose players have not been heard of for so long, and names
        them."""
        now_s = self._now_s()
        freed: list[int] = []
        for claim in self._claims.glob("episode_*"):
            episode = int(claim.name.removeprefix("episode_"))
            with suppress(FileNotFoundError):
                is_silent = now_s - claim.stat().st_mtime > silent_s
                if is_silent and not self._shard(episode).exists():
                    claim.unlink()
                    freed.append(episode)
        return sorted(freed)

    def close(self) -> None:
        """Says that no more is wished for."""
        with suppress(OSError):
            (self._folder / _OVER).touch()

    # --- the players' side -----------------------------------------------------------------

    def claim(self, player: str, most: int) -> list[int]:
        """Takes open episodes, those of the earliest round first, at most so many."""
        claimed: list[int] = []
        mine = self._claims / f".{player}"
        with suppress(FileNotFoundError):  # The trainer has just begun again.
            mine.write_text(player)
            for path in sorted(self._rounds.glob("[0-9]*.json")):
                first, stop = json.loads(path.read_text())
                for episode in range(first, stop):
                    if len(claimed) == most:
                        break
                    if not self._shard(episode).exists() and self._link(mine, episode, player):
                        claimed.append(episode)
                if not path.exists():  # The trainer was faster, and is through with it.
                    self.release(player, (e for e in claimed if first <= e < stop))
                    claimed = [e for e in claimed if not first <= e < stop]
        mine.unlink(missing_ok=True)
        return claimed

    def _link(self, mine: Path, episode: int, player: str) -> bool:
        """Each claim is a file of its own, so that it has a time of its own."""
        own = mine.with_name(f"{mine.name}-{episode}")
        own.write_text(player)
        try:
            os.link(own, self._claim(episode))
        except FileExistsError:
            return False
        finally:
            own.unlink(missing_ok=True)
        return True

    @contextmanager
    def renewing(self, player: str, episodes: Sequence[int]) -> Generator[None]:
        """Keeps a player's claims while the block runs."""
        is_done = threading.Event()

        def renew() -> None:
            while not is_done.wait(RENEWAL_S):
                for episode in episodes:
                    with suppress(OSError):
                        if self._claim(episode).read_text() == player:
                            os.utime(self._claim(episode))

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_done.set()
            thread.join()

    def hand_in(self, player: str, episode: int, trajectory: Trajectory) -> bool:
        """Gives an episode its name, unless its claim was lost meanwhile; returns whether.

        Raises:
            StorageError: the disk refuses.
        """
        mine = self._shards / f"{player}-{episode}.parquet"
        try:
            if self._claim(episode).read_text() != player:
                return False
            write_shard(mine, [trajectory])
            os.link(mine, self._shard(episode))
        except (FileNotFoundError, FileExistsError):
            return False
        finally:
            with suppress(OSError):
                mine.unlink(missing_ok=True)
        return True

    def release(self, player: str, episodes: Iterable[int]) -> None:
        """Gives claims back that are not played after all."""
        for episode in episodes:
            with suppress(OSError):
                if self._claim(episode).read_text() == player:
                    self._claim(episode).unlink()

    # --- names -----------------------------------------------------------------------------

    def _claim(self, episode: int) -> Path:
        return self._claims / f"episode_{episode}"

    def _shard(self, episode: int) -> Path:
        return self._shards / f"episode_{episode}.parquet"

    def _now_s(self) -> float:
        """The file system's time: machines' clocks differ."""
        probe = self._claims / ".now"
        probe.touch()
        os.utime(probe)
        return probe.stat().st_mtime


def player_name() -> str:
    """A name that no other player has."""
    return f"{os.uname().nodename}-{os.getpid()}-{uuid4().hex[:8]}"

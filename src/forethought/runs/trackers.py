"""Where the numbers of a run's logs go besides: TensorBoard, Weights & Biases, Trackio.

All of them are Accelerate's trackers. `metrics.jsonl` stays the truth, and nothing is read from a
tracker. Where more than TensorBoard was chosen, `trackers.json` keeps it and the run's name there,
so that a resumed run continues the same ones.
"""

import importlib.util
import json
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, NamedTuple

from forethought.durable import write_text
from forethought.errors import MissingDependencyError, StorageError
from forethought.runs.run_folder import TRACKERS, RunFolder
from forethought.types import Metric

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker

TrackerName = Literal["tensorboard", "wandb", "trackio"]
USUAL: tuple[TrackerName, ...] = ("tensorboard",)
PROJECT = "forethought"
_NEEDS = {"wandb": "wandb", "trackio": "trackio"}
"""Packages of the extra `tracking`."""

_chosen: ContextVar[tuple[TrackerName, ...] | None] = ContextVar("trackers", default=None)


class Tracking(NamedTuple):
    """Which trackers a run has, and what it is called there."""

    names: tuple[TrackerName, ...]
    run: str
    """Unique: another run in a folder of the same name is another one there."""


@contextmanager
def logging_to(names: Sequence[TrackerName] | None) -> Generator[None]:
    """Runs that are opened in this block send their numbers to these trackers; None: to those that
    a resumed run has, or else to TensorBoard.

    Raises:
        MissingDependencyError: one of them is not installed.
    """
    for name in names or ():
        package = _NEEDS.get(name)
        if package is not None and importlib.util.find_spec(package) is None:
            raise MissingDependencyError(
                f'--log {name} needs {package} — run: pip install "forethought[tracking]"'
            )
    token = _chosen.set(None if names is None else tuple(dict.fromkeys(names)))
    try:
        yield
    finally:
        _chosen.reset(token)


class Trackers:
    """The trackers of one run, open."""

    def __init__(self, folder: RunFolder, *, first_step: int, sent: int) -> None:
        """
        Args:
            first_step: what TensorBoard has from this step on is dropped: it comes again.
            sent: lines that come again and that the others, which drop nothing, have already.
        """
        tracking = _tracking(folder)
        self._opened = {
            name: _open(name, folder, tracking.run, first_step) for name in tracking.names
        }
        self._sent = sent

    def log(self, step: int, metrics: Sequence[Metric]) -> None:
        """Sends one line of a log."""
        values = {name: float(value) for name, value in metrics}
        was_sent = self._sent > 0
        self._sent -= was_sent
        for name, tracker in self._opened.items():
            if name == "tensorboard" or not was_sent:
                tracker.log(values, step=step)

    def close(self) -> None:
        """Ends the run in every tracker; a second call does nothing."""
        while self._opened:
            self._opened.popitem()[1].finish()


def _tracking(folder: RunFolder) -> Tracking:
    """As it was chosen now, or else as the folder has it."""
    path, chosen = folder.path / TRACKERS, _chosen.get()
    stored = None
    if path.exists():
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            stored = Tracking(tuple(content["log"]), str(content["run"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{path}: is damaged — delete it") from error
    name = f"{folder.path.name}-{secrets.token_hex(4)}"
    names = chosen if chosen is not None else stored.names if stored else USUAL
    tracking = Tracking(names, stored.run if stored else name)
    if tracking != stored and (stored or names != USUAL):
        text = json.dumps({"log": list(tracking.names), "run": tracking.run})
        write_text(path, text + "\n")
    return tracking


def _open(name: TrackerName, folder: RunFolder, run: str, first_step: int) -> "GeneralTracker":
    # Imported late: it takes seconds, and reading a log needs none of it.
    from accelerate import PartialState, tracking

    PartialState()  # Trackers write to a log that asks which process this is.
    if name == "tensorboard":
        place = folder.tensorboard_dir
        tracker = tracking.TensorBoardTracker(place.name, place.parent, purge_step=first_step)
    elif name == "wandb":
        tracker = tracking.WandBTracker(
            PROJECT, id=run, name=run, dir=str(folder.path), resume="allow"
        )
    else:
        tracker = tracking.TrackioTracker(PROJECT, name=run, resume="allow")
    tracker.start()
    return tracker

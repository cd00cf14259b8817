"""Workers and engines that are killed again and again: a run loses nothing by it but time."""

from pathlib import Path

import pytest

from tests.durability.worker_attacks import Command, lose


def until_the_next_iteration(trainer: Command, run: Path) -> None:
    """By what is done, not by the clock: a fast machine ends the run within seconds."""

    def stored() -> int:
        return len(list((run / "trajectories").glob("*.parquet")))

    before = stored()
    while trainer.code is None and stored() == before:
        trainer.wait(0.05)


@pytest.mark.slow
def test_workers_and_engines_are_lost_in_every_iteration(tmp_path: Path) -> None:
    """Each episode is trained on once, by the weights of its iteration, and the run ends."""
    found = lose(tmp_path, steps=200, kills=8, pause=until_the_next_iteration, engine_every=3)
    assert found.harm == []
    assert found.workers >= 4
    assert found.engines >= 1
    assert found.episodes >= 32

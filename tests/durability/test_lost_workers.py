"""Workers and engines that are killed again and again: a run loses nothing by it but time."""

from pathlib import Path

import pytest

from tests.durability.worker_attacks import lose


@pytest.mark.slow
def test_workers_and_engines_are_lost_every_few_seconds(tmp_path: Path) -> None:
    """Each episode is trained on once, by the weights of its iteration, and the run ends."""
    found = lose(tmp_path, seconds=40.0, worker_s=4.0, engine_s=10.0)
    assert found.harm == []
    assert found.workers >= 4
    assert found.engines >= 1
    assert found.episodes >= 32

"""The attacks of docs/reliability.md on runs and files, with fewer tries."""

import pytest

from tests.durability.run_attacks import (
    flipped_checkpoints,
    flipped_results,
    flipped_shards,
    hostile_values,
    killed_runs,
    killed_workers,
)

pytestmark = pytest.mark.slow


def test_a_killed_worker_loses_and_alters_nothing() -> None:
    assert killed_workers(8).failures == 0


def test_no_hostile_value_is_learned_from() -> None:
    assert hostile_values(2).failures == 0


def test_no_flipped_bit_is_read() -> None:
    assert flipped_checkpoints(30).failures == 0
    assert flipped_shards(60).failures == 0
    assert flipped_results(120).failures == 0


def test_seven_algorithms_go_on_as_if_nobody_had_stopped_them() -> None:
    assert killed_runs(2).failures == 0

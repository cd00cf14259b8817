"""The attacks of docs/reliability.md on commands, with fewer tries."""

import pytest

from tests.durability.command_attacks import early_interrupts, hostile_settings, no_engines

pytestmark = pytest.mark.slow


def test_a_program_that_is_no_engine_is_refused_in_one_line() -> None:
    assert no_engines(1).failures == 0


def test_hostile_settings_are_refused_in_one_line() -> None:
    assert hostile_settings(10).failures == 0


def test_an_early_interruption_is_one_line() -> None:
    assert early_interrupts(15).failures == 0

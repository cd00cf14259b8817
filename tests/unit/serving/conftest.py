"""Servers: with patience, without it, and without room."""

from collections.abc import Generator
from dataclasses import replace

import pytest

from tests.unit.serving.served import LIMITS, Served, serve


@pytest.fixture
def served() -> Generator[Served]:
    yield from serve(LIMITS)


@pytest.fixture
def hasty() -> Generator[Served]:
    """A server without patience."""
    yield from serve(replace(LIMITS, timeout_s=0.2))


@pytest.fixture
def narrow() -> Generator[Served]:
    """Without patience, and with room for one."""
    yield from serve(replace(LIMITS, timeout_s=0.2, concurrency=1))


@pytest.fixture
def crowded() -> Generator[Served]:
    """With patience, and with room for one."""
    yield from serve(replace(LIMITS, concurrency=1))

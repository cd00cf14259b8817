"""Fixtures that these tests share with others."""

from tests.unit.algorithms.conftest import crossing, offline, small_model, walks

__all__ = ["crossing", "offline", "small_model", "walks"]

"""The grid of crossing roads, a very small model that can talk in it, and stored episodes."""

from tests.unit.algorithms.conftest import crossing, offline, small_model, walks

__all__ = ["crossing", "offline", "small_model", "walks"]  # fixtures, used by name

"""One thread: more would wait for each other on models as small as these."""

from tests.unit.models.conftest import one_thread

__all__ = ["one_thread"]  # a fixture, used by every test

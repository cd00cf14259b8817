"""The tiny model with sharpened random weights, and one thread."""

from tests.unit.models.conftest import make_prompts, one_thread, tiny

__all__ = ["make_prompts", "one_thread", "tiny"]  # fixtures, used by name

"""Whether this machine has what the robot's tests need."""

import importlib.util

import pytest

from forethought.errors import MissingDependencyError
from tests.skips import needs


def _missing() -> str | None:
    """The reason to skip; None: nothing is missing."""
    if importlib.util.find_spec("mujoco") is None:
        return needs("mujoco", 'pip install "forethought[manipulation]"')
    from forethought.environments.manipulation.camera import find_renderer

    try:
        find_renderer()
    except MissingDependencyError:
        return needs("EGL or OSMesa", "apt-get install libosmesa6")
    return None


REASON = _missing()
draws = pytest.mark.skipif(REASON is not None, reason=REASON or "")
"""Marks a test that draws the robot."""

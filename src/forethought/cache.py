"""Where derived files lie that can be made again at any time."""

import os
from pathlib import Path

CACHE_VARIABLE = "FORETHOUGHT_CACHE"
"""Environment variable that names another folder than ~/.cache/forethought."""


def cache_folder() -> Path:
    """`FORETHOUGHT_CACHE`, or a folder of ours in the user's cache (`XDG_CACHE_HOME`)."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "forethought"

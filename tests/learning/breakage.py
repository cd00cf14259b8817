"""What breaks an algorithm, to show that its test would notice."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


def distort(
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    function: str,
    **changes: Callable[..., Any],
) -> None:
    """From now on the module calls the function with these arguments changed."""
    sound = getattr(module, function)

    def broken(**arguments: Any) -> Any:
        changed = {name: change(arguments[name]) for name, change in changes.items()}
        return sound(**arguments | changed)

    monkeypatch.setattr(module, function, broken)

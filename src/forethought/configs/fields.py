"""Fields that take more than they hold: a path of any kind for text, a name for an environment.

    PPOConfig(model=Path("runs/sft"), environment="NumberLine")

holds "runs/sft" and `EnvironmentConfig("NumberLine")`. A type checker sees a descriptor whose
`__set__` takes either; at run time the annotations are plain types, and `settle` converts.
"""

import dataclasses
import os
from dataclasses import field
from typing import TYPE_CHECKING, Any

from forethought.configs.parts import EnvironmentConfig

if TYPE_CHECKING:

    class PathField:
        """Holds text, takes any path."""

        def __get__(self, instance: object, owner: type) -> str: ...
        def __set__(self, instance: object, value: str | os.PathLike[str]) -> None: ...

    class OptionalPathField:
        """Holds text or None, takes any path or None."""

        def __get__(self, instance: object, owner: type) -> str | None: ...
        def __set__(self, instance: object, value: str | os.PathLike[str] | None) -> None: ...

    class EnvironmentField:
        """Holds the settings of an environment, takes its name as well."""

        def __get__(self, instance: object, owner: type) -> EnvironmentConfig: ...
        def __set__(self, instance: object, value: EnvironmentConfig | str) -> None: ...

    def path_field(default: str) -> PathField: ...
    def optional_path_field() -> OptionalPathField: ...
    def environment_field() -> EnvironmentField: ...
else:
    PathField, OptionalPathField, EnvironmentField = str, str | None, EnvironmentConfig

    def path_field(default):
        """A field that holds a path."""
        return default

    def optional_path_field():
        """A field that holds a path or, by default, None."""
        return

    def environment_field():
        """A field that holds an environment's settings."""
        return field(default_factory=EnvironmentConfig)


def settle(config: Any) -> None:
    """Turns paths into text, and an environment's name into its settings: the first thing that
    the `__post_init__` of an algorithm's settings does."""
    for one in dataclasses.fields(config):
        value = getattr(config, one.name)
        if isinstance(value, os.PathLike):
            object.__setattr__(config, one.name, os.fspath(value))
        elif one.name == "environment" and isinstance(value, str):
            object.__setattr__(config, one.name, EnvironmentConfig(value))

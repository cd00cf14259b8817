"""The environments that can be acted in; importing this package registers the shipped ones."""

from forethought.environments.catalog import SHIPPED
from forethought.environments.registry import (
    EnvironmentSpec,
    find_environment,
    is_installed,
    list_environments,
    make_environment,
    register_environment,
)

for _spec in SHIPPED:
    register_environment(_spec)

__all__ = [
    "EnvironmentSpec",
    "find_environment",
    "is_installed",
    "list_environments",
    "make_environment",
    "register_environment",
]

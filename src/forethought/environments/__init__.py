"""What world is there? Importing this package registers the worlds that are shipped."""

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

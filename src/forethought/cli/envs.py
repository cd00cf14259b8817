"""`forethought envs`."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from forethought.cli.flags import Operand, Switch
from forethought.cli.terminal import align, percent
from forethought.environments import (
    EnvironmentSpec,
    find_environment,
    is_installed,
    list_environments,
    make_environment,
)
from forethought.environments.contract import Ceiling, ceiling_of
from forethought.environments.gym.description import describe
from forethought.environments.registry import GYMNASIUM_PREFIX
from forethought.errors import ForethoughtError

_INDENT = "  "
_NOT_KNOWN = "–"


@dataclass(frozen=True)
class Envs:
    """Which environments, and how they are printed."""

    names: Annotated[tuple[str, ...], Operand("[NAME ...]")] = ()
    """Environments to be told more of, shipped ones or `gym:ID`; by default a table of all that are
    shipped."""

    json: Switch = False
    """Print a JSON list, for programs."""


def envs(settings: Envs) -> None:
    """List all environments: what is seen and done, and the best success rate that any policy can
    reach. Of an environment that is named: rewards, success and options as well. Any id of
    Gymnasium's is an environment, too: gym:ID.

    Examples:
      forethought envs
      forethought envs Points24
      forethought envs gym:FrozenLake-v1
      forethought envs --json
    """
    specs = tuple(_find(name) for name in settings.names) or list_environments()
    if settings.json:
        print(json.dumps([_to_json(spec) for spec in specs], indent=2))
    elif settings.names:
        print("\n\n".join("\n".join(_in_words(spec)) for spec in specs))
    else:
        header = ("environment", "sees", "best success", "summary")
        print("\n".join(align([header, *map(_cells, specs)], left=True)))
        print("\nmore of one: forethought envs Points24; play it: forethought play Points24")
        print("any id of Gymnasium's works as gym:ID: forethought envs gym:FrozenLake-v1")


def _find(name: str) -> EnvironmentSpec:
    return describe(name) if name.startswith(GYMNASIUM_PREFIX) else find_environment(name)


def _ceiling(spec: EnvironmentSpec) -> Ceiling | None:
    """None where it is not known, or something is to be installed first."""
    if not is_installed(spec):
        return None
    with suppress(ForethoughtError):  # Its data may yet have to be fetched.
        environment = make_environment(spec.name)
        try:
            return ceiling_of(environment)
        finally:
            environment.close()
    return None


def _to_json(spec: EnvironmentSpec) -> dict[str, Any]:
    ceiling = _ceiling(spec)
    return {
        "id": spec.id,
        "name": spec.name,
        "summary": spec.summary,
        "spaces": {"observation": spec.observation, "actions": spec.actions},
        "reward": spec.reward,
        "success": spec.success,
        "ceiling": None if ceiling is None else _ceiling_to_json(ceiling),
        "options": [
            {
                "name": option.name,
                "default": option.default,
                "allowed": option.allowed,
                "meaning": option.meaning,
            }
            for option in spec.options
        ],
        "extra": spec.extra,
        "installed": is_installed(spec),
    }


def _ceiling_to_json(ceiling: Ceiling) -> dict[str, object]:
    return {"success_rate": ceiling.success_rate, "method": ceiling.method}


def _cells(spec: EnvironmentSpec) -> tuple[str, ...]:
    ceiling = _ceiling(spec)
    best = _NOT_KNOWN if ceiling is None else percent(ceiling.success_rate)
    summary = spec.summary if is_installed(spec) else f"{spec.summary} ({_to_install(spec)})"
    return spec.name, spec.observation, best, summary


def _in_words(spec: EnvironmentSpec) -> Iterator[str]:
    yield f"{spec.name}: {spec.summary}"
    ceiling = _ceiling(spec)
    best = f"{percent(ceiling.success_rate)}, {ceiling.method}" if ceiling else _NOT_KNOWN
    rows = [
        ("sees", spec.observation),
        ("actions", spec.actions),
        ("reward", spec.reward),
        ("success", spec.success),
        ("best", best),
    ]
    if spec.expert:
        rows.append(("expert", spec.expert))
    if not is_installed(spec):
        rows.append(("install", _to_install(spec)))
    rows += [
        (f"{option.name}={option.default}", f"{option.meaning}: {option.allowed}")
        for option in spec.options
    ]
    yield from (f"{_INDENT}{line}" for line in align(rows, left=True))


def _to_install(spec: EnvironmentSpec) -> str:
    return f'pip install "forethought[{spec.extra}]"'

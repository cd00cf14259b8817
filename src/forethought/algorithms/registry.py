"""The algorithms by name: one line for each.

An algorithm is a folder and a line of `_OWN`. A package outside adds one without either: it
declares an entry point of the group `forethought.algorithms` whose value names an `Algorithm`:

    [project.entry-points."forethought.algorithms"]
    bandit-q = "my_package.algorithm:ALGORITHM"

Nothing here imports torch: loops and plans are named as text, `package.module:name`, and
imported when they are asked for.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

from forethought.configs.contract import AnyConfig
from forethought.errors import ConfigError, UnknownNameError

ENTRY_POINTS = "forethought.algorithms"
"""The group in which a package outside names its algorithms."""

_OWN = {
    "sft": "forethought.algorithms.sft:ALGORITHM",
    "ppo": "forethought.algorithms.ppo:ALGORITHM",
    "dpo": "forethought.algorithms.dpo:ALGORITHM",
    "q-sft": "forethought.algorithms.q_sft:ALGORITHM",
    "ilql": "forethought.algorithms.ilql:ALGORITHM",
    "q-transformer": "forethought.algorithms.q_transformer:ALGORITHM",
    "archer": "forethought.algorithms.archer:ALGORITHM",
}


@dataclass(frozen=True)
class Preset:
    """A name that the field uses for an algorithm with certain settings."""

    name: str
    """As it is typed: `grpo`."""

    summary: str
    """One line of help."""

    settings: tuple[tuple[str, Any], ...]
    """Dotted fields and their values, laid over the algorithm's defaults."""


@dataclass(frozen=True)
class Algorithm:
    """All that is known of an algorithm outside its folder. What is named as text is
    `package.module:name`."""

    name: str
    """As it is typed, and as `algorithm` in YAML: `q-sft`."""

    summary: str
    """One line of help."""

    description: str
    """What follows that line in the help: a few sentences, then examples."""

    config: str
    """The settings: a frozen dataclass with a default for every field (`AnyConfig`)."""

    train: str
    """`train(config, *, existing)` gives the run folder; `existing` is what to do with a run that
    is in it, "refuse", "resume" or "overwrite"."""

    plan: str | None = None
    """`plan(config)` gives what the run will do and need, as lines (`--dry-run`)."""

    check: str | None = None
    """`check(config)` refuses, before the run folder is touched, what training would refuse."""

    policy: str | None = None
    """`open_policy(folder, environment, prompt, *, slots)` gives a policy from a checkpoint's
    model folder, and the environment with its prompts as this policy sees it. By default a
    language model, which acts by the values that are saved beside it, if there are any."""

    presets: tuple[Preset, ...] = ()

    @property
    def config_class(self) -> type[AnyConfig]:
        """The class of its settings."""
        return load(self.config)

    def train_run(self, config: AnyConfig, *, existing: str = "refuse") -> Path:
        """Trains; imports the loop, and with it torch.

        Args:
            config: settings of this algorithm.
            existing: what to do with a run that is in the output folder: "refuse", "resume" or
                "overwrite".

        Returns:
            The run folder.
        """
        return load(self.train)(config, existing=existing)

    def plan_run(self, config: AnyConfig) -> Sequence[str]:
        """What a run will do and need, as lines; none where the algorithm has no plan."""
        return [] if self.plan is None else load(self.plan)(config)

    def check_run(self, config: AnyConfig) -> None:
        """Refuses what can be refused before a run folder is touched."""
        if self.check is not None:
            load(self.check)(config)

    @property
    def open_policy(self) -> Callable[..., Any] | None:
        """What opens a checkpoint of its own kind; None: a language model."""
        return None if self.policy is None else load(self.policy)


def load(path: str) -> Any:
    """What `package.module:name` names."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def algorithm(name: str) -> Algorithm:
    """The algorithm of this name, or the one that a preset of this name belongs to.

    Raises:
        UnknownNameError: there is none.
        ConfigError: it belongs to a package that cannot be imported.
    """
    return _found(name)[0]


def preset(name: str) -> Preset | None:
    """The preset of this name; None where the name is an algorithm's own.

    Raises:
        UnknownNameError: there is neither.
    """
    return _found(name)[1]


def algorithms() -> list[Algorithm]:
    """All of them, those of packages outside last.

    Raises:
        ConfigError: a package outside that declares one cannot be imported.
    """
    outside = [_outside(point) for point in _entry_points() if point.name not in _OWN]
    return [_own(name) for name in _OWN] + outside


def algorithm_names() -> list[str]:
    """Names of all algorithms. No package outside is imported."""
    return [*_OWN, *(point.name for point in _entry_points() if point.name not in _OWN)]


def summaries() -> list[tuple[str, str]]:
    """Every name of an algorithm or a preset, with its line of help; of a package outside that
    cannot be imported, why not."""
    found: list[Algorithm] = []
    broken: list[tuple[str, str]] = []
    for name in algorithm_names():
        try:
            found.append(algorithm(name))
        except ConfigError as error:
            broken.append((name, str(error)))
    presets = [(one.name, one.summary) for each in found for one in each.presets]
    return [*((each.name, each.summary) for each in found), *presets, *broken]


def algorithm_of(config: AnyConfig) -> Algorithm:
    """The algorithm whose settings these are."""
    path = _path_of(type(config))
    for name in _OWN:
        if _own(name).config == path:
            return _own(name)
    for found in algorithms():
        if found.config_class is type(config):
            return found
    raise TypeError(f"{path} is the settings class of no algorithm in the registry")


def _found(name: str) -> tuple[Algorithm, Preset | None]:
    if name in _OWN:
        return _own(name), None
    own = [(found, one) for found in map(_own, _OWN) for one in found.presets]
    for found, one in own:
        if one.name == name:
            return found, one
    for point in _entry_points():
        if point.name == name:
            return _outside(point), None
    known = algorithms()
    for found in known:
        for one in found.presets:
            if one.name == name:
                return found, one
    names = [found.name for found in known] + [one.name for a in known for one in a.presets]
    raise UnknownNameError(f"unknown algorithm {name!r} — known: {', '.join(names)}")


@cache
def _own(name: str) -> Algorithm:
    return load(_OWN[name])


def _outside(point: EntryPoint) -> Algorithm:
    """What a package outside declares.

    Raises:
        ConfigError: it cannot be imported, or is no `Algorithm` of this name.
    """
    try:
        found = cast(object, point.load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"algorithm {point.name!r}: {point.value} cannot be imported: {error} — fix or "
            "uninstall the package that declares it"
        ) from error
    if not isinstance(found, Algorithm) or found.name != point.name:
        raise ConfigError(
            f"algorithm {point.name!r}: {point.value} is {type(found).__name__}, not an Algorithm "
            "of this name — fix or uninstall the package that declares it"
        )
    return found


def _entry_points() -> Sequence[EntryPoint]:
    """Those that packages outside declare, sorted by name; a name that two declare counts once."""
    return _entry_points_on(tuple(sys.path))


@cache
def _entry_points_on(_path: tuple[str, ...]) -> Sequence[EntryPoint]:
    """Every installed package is looked through, which takes some 30 ms."""
    found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    return [found[name] for name in sorted(found)]


def _path_of(kind: type[Any]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"

"""Settings as YAML: written whole into the run folder, read back equal, refused by name.

A file holds the fields of one config that differ from its defaults, nested as the config
is, and may say which algorithm it is for:

    algorithm: ppo
    environment:
      id: EZPoints
    total_steps: 30720
"""

import dataclasses
import difflib
import types
import typing
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml

from forethought.config import PPOConfig, SFTConfig
from forethought.errors import ConfigError

CONFIG_VERSION = 1
ALGORITHMS = {"sft": SFTConfig, "ppo": PPOConfig}
AnyConfig = SFTConfig | PPOConfig
ConfigT = TypeVar("ConfigT", SFTConfig, PPOConfig)


def dump_config(config: AnyConfig) -> str:
    """Every field, defaults included, as YAML."""
    algorithm = next(name for name, kind in ALGORITHMS.items() if kind is type(config))
    header = {"config_version": CONFIG_VERSION, "algorithm": algorithm}
    return yaml.safe_dump(
        {**header, **_plain(dataclasses.asdict(config))}, sort_keys=False, allow_unicode=True
    )


def load_config(path: Path, kind: type[ConfigT]) -> ConfigT:
    """Reads a config of this kind; what the file leaves out keeps its default.

    Raises:
        ConfigError: no such file, no YAML, another algorithm or version, an unknown
            field, a value of the wrong type or out of range. One line, naming the file.
    """
    return cast(ConfigT, _load(path, kind))


def load_any_config(path: Path) -> AnyConfig:
    """Reads a config of whichever algorithm the file names."""
    return _load(path, None)


def _load(path: Path, kind: type[AnyConfig] | None) -> AnyConfig:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise ConfigError(f"{path}: is not YAML: {problem}") from error
    if content is None:
        content = {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected fields and values, got {type(content).__name__}")
    fields = cast(dict[str, Any], content)
    version = fields.pop("config_version", CONFIG_VERSION)
    if version != CONFIG_VERSION:
        raise ConfigError(
            f"{path}: config_version is {version!r} — this Forethought reads {CONFIG_VERSION}; "
            "rewrite the file for it, or use the Forethought that wrote it"
        )
    algorithm = fields.pop("algorithm", None)
    if algorithm is not None and algorithm not in ALGORITHMS:
        known = " or ".join(ALGORITHMS)
        raise ConfigError(f"{path}: algorithm is {algorithm!r} — expected {known}")
    if kind is None and algorithm is None:
        raise ConfigError(f"{path}: algorithm is missing — expected {' or '.join(ALGORITHMS)}")
    chosen = ALGORITHMS[algorithm] if algorithm else kind
    if kind is not None and chosen is not kind:
        raise ConfigError(f"{path}: is for algorithm {algorithm!r}, not for this command")
    try:
        return cast(AnyConfig, _overlay(cast(type[Any], chosen)(), fields, ""))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _plain(value: Any) -> Any:
    """Tuples as lists, which YAML has."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in cast(list[Any], value)]
    return value


def _overlay(default: Any, values: dict[str, Any], prefix: str) -> Any:
    """A copy of a config with these fields replaced, nested ones field by field."""
    hints = typing.get_type_hints(type(default))
    known = [field.name for field in dataclasses.fields(default)]
    replaced: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"known: {', '.join(known)}"
            raise ConfigError(f"unknown field {prefix}{name} — {hint}")
        current = getattr(default, name)
        if not dataclasses.is_dataclass(current):
            replaced[name] = _convert(value, hints[name], prefix + name)
        elif isinstance(value, dict):
            replaced[name] = _overlay(current, cast(dict[str, Any], value), f"{prefix}{name}.")
        else:
            raise ConfigError(f"{prefix}{name} is {value!r} — expected fields and values")
    return dataclasses.replace(default, **replaced)


def _convert(value: Any, hint: Any, name: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        return _convert(value, next(a for a in arguments if a is not type(None)), name)
    if origin is typing.Literal:
        if value not in arguments:
            raise ConfigError(f"{name} is {value!r} — expected {_either(arguments)}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise ConfigError(f"{name} is {value!r} — expected a list")
        return tuple(
            _convert(item, arguments[0], f"{name}[{index}]")
            for index, item in enumerate(cast(list[Any], value))
        )
    return _convert_scalar(value, hint, name)


def _convert_scalar(value: Any, hint: type, name: str) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is float and is_number:
        return float(value)
    if hint is float and isinstance(value, str):
        try:
            return float(value)  # YAML 1.1 reads "1e-5", without a dot, as text
        except ValueError:
            pass
    if type(value) is hint:
        return value
    names = {float: "a number", int: "a whole number", str: "text", bool: "true or false"}
    raise ConfigError(f"{name} is {value!r} — expected {names[hint]}")


def _either(choices: tuple[Any, ...]) -> str:
    return " or ".join(str(choice) for choice in choices)

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
import math
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import yaml

from forethought.algorithms.registry import algorithm as algorithm_named
from forethought.algorithms.registry import algorithm_names, algorithm_of, preset
from forethought.configs.contract import AnyConfig
from forethought.configs.migration import renamed
from forethought.configs.parts import Inline, shown
from forethought.errors import ConfigError

CONFIG_VERSION = 2
ConfigT = TypeVar("ConfigT", bound=AnyConfig)
RecordT = TypeVar("RecordT")


_LARGEST = 2**63
"""No setting is a larger number."""
_MERGE = "tag:yaml.org,2002:merge"
"""How YAML calls `<<`."""

_NO_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError)
"""What the library raises for a file that is none; the last three for a number, a date or
another tagged value that is none."""


class Setting(NamedTuple):
    """One field of a config, and the value that it gets."""

    name: str
    """Dotted: `optimizer.learning_rate`."""
    value: Any
    """As YAML gave it; checked when it is set."""


def dump_config(config: AnyConfig) -> str:
    """Every field, defaults included, as YAML."""
    header = {"config_version": CONFIG_VERSION, "algorithm": algorithm_of(config).name}
    return yaml.safe_dump({**header, **_plain(config)}, sort_keys=False, allow_unicode=True)


def load_config(path: Path, kind: type[ConfigT], *, default: ConfigT | None = None) -> ConfigT:
    """Reads a config of this kind; what the file leaves out keeps its default.

    Args:
        default: what the file is laid over; by default, the kind's own defaults.

    Raises:
        ConfigError: no such file, no YAML, another algorithm or version, an unknown
            field, a value of the wrong type or out of range. One line, naming the file.
    """
    return cast(ConfigT, _load(path, kind, default))


def load_any_config(path: Path) -> AnyConfig:
    """Reads a config of whichever algorithm the file names."""
    return _load(path, None, None)


def with_settings(config: ConfigT, settings: Sequence[Setting]) -> ConfigT:
    """A copy of a config with these fields replaced.

    All at once, for the values that one field may have can depend on another.

    Raises:
        ConfigError: an unknown field, a value of the wrong type or out of range.
    """
    return cast(ConfigT, _overlay(config, _nested(settings), ""))


def preset_config(name: str) -> AnyConfig:
    """The defaults of an algorithm, or of a preset.

    Raises:
        UnknownNameError: there is neither of this name.
    """
    config, named = algorithm_named(name).config_class(), preset(name)
    if named is None:
        return config
    return with_settings(config, [Setting(field, value) for field, value in named.settings])


def load_record(path: Path, kind: type[RecordT], *, version_field: str, version: int) -> RecordT:
    """Reads a file of another sort than a config, just as strictly.

    Args:
        kind: a dataclass of what YAML has, lists of such dataclasses, and lists of `Setting`
            (fields and values, nested or dotted).
        version_field: how the file names its version; it may leave it out.

    Raises:
        ConfigError: as `load_config`; or a field that has no default is missing.
    """
    fields = _read_fields(path, version_field, version)
    try:
        return _build(kind, fields, "")
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    except RecursionError:  # Fields that hold themselves.
        raise ConfigError(f"{path}: is nested too deep — no setting needs that") from None


def _read_fields(path: Path, version_field: str, known_version: int) -> dict[str, Any]:
    """What stands in a file of this version."""
    try:
        root, content = _parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except RecursionError:
        raise ConfigError(f"{path}: is nested too deep — no setting needs that") from None
    except _NO_YAML as error:
        problem = " ".join(str(error).split()).partition("; use sys.")[0]
        raise ConfigError(f"{path}: is not YAML: {problem}") from error
    _require_once(root, path)
    if content is None:
        content = {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected fields and values, got {type(content).__name__}")
    fields = cast(dict[str, Any], content)
    version = fields.pop(version_field, known_version)
    if version != known_version:
        way = "rewrite the file for it, or use the Forethought that wrote it"
        if version == 1:
            way = f"`forethought migrate {path} --write` rewrites it"
        raise ConfigError(
            f"{path}: {version_field} is {shown(version)} — this Forethought reads "
            f"{known_version}; {way}"
        )
    return fields


def _parse(text: str) -> tuple[yaml.Node | None, object]:
    """As nodes, which tell what is set twice, and as values."""
    return yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)


def _require_once(root: yaml.Node | None, path: Path) -> None:
    """Refuses a field that is set twice: YAML would take the last value, and pass the first over.

    What is merged (`<<`) is no second time: it may be set again.

    Raises:
        ConfigError: naming the field and the line.
    """
    seen: set[int] = set()
    left = [root]
    while left:
        node = left.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))  # An anchor's node stands in several places, or in itself.
        if isinstance(node, yaml.SequenceNode):
            left += node.value
            continue
        names: set[str] = set()
        for key, value in node.value:
            left.append(value)
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            if key.value in names:
                line = key.start_mark.line + 1
                raise ConfigError(f"{path}: line {line}: {key.value} is set twice — keep one")
            names.add(key.value)


def _load(path: Path, kind: type[AnyConfig] | None, default: AnyConfig | None) -> AnyConfig:
    fields = _read_fields(path, "config_version", CONFIG_VERSION)
    algorithm = fields.pop("algorithm", None)
    if algorithm is None and kind is None:
        known = " or ".join(algorithm_names())
        raise ConfigError(f"{path}: algorithm is missing — expected {known}")
    if algorithm is not None and algorithm not in (names := algorithm_names()):
        raise ConfigError(
            f"{path}: algorithm is {shown(algorithm)} — expected {' or '.join(names)}"
        )
    chosen = kind if algorithm is None else algorithm_named(algorithm).config_class
    assert chosen is not None
    if kind is not None and chosen is not kind:
        raise ConfigError(f"{path}: is for algorithm {algorithm!r}, not for this command")
    try:
        return cast(AnyConfig, _overlay(default or chosen(), fields, ""))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _plain(value: Any) -> Any:
    """Groups as dicts and tuples as lists, which YAML has."""
    if dataclasses.is_dataclass(value):
        fields: dict[str, Any] = {}
        inline = _inline_groups(type(value))
        for field in dataclasses.fields(value):
            plain = _plain(getattr(value, field.name))
            fields |= plain if field.name in inline else {field.name: plain}
        return fields
    if isinstance(value, tuple | list):
        return [_plain(item) for item in cast(list[Any], value)]
    return value


def _inline_groups(kind: Any) -> list[str]:
    """The fields that are groups whose fields lie beside the others (`Inline`)."""
    hints = typing.get_type_hints(kind, include_extras=True)
    marked = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return [name for name, notes in marked.items() if any(isinstance(n, Inline) for n in notes)]


def _overlay(default: Any, values: dict[str, Any], prefix: str) -> Any:
    """A copy of a config with these fields replaced, nested ones field by field."""
    hints = typing.get_type_hints(type(default))
    inline = _inline_groups(type(default))
    known = [field.name for field in dataclasses.fields(default) if field.name not in inline]
    replaced: dict[str, Any] = {}
    for group in inline:
        current = getattr(default, group)
        names = [field.name for field in dataclasses.fields(current)]
        known += names
        own = {name: values[name] for name in names if name in values}
        replaced[group] = _overlay(current, own, prefix)
        values = {name: value for name, value in values.items() if name not in own}
    for name, value in values.items():
        _require_known(name, known, prefix)
        current = getattr(default, name)
        if not dataclasses.is_dataclass(current):
            replaced[name] = _convert(value, hints[name], prefix + name)
        elif isinstance(value, dict):
            replaced[name] = _overlay(current, cast(dict[str, Any], value), f"{prefix}{name}.")
        else:
            raise ConfigError(f"{prefix}{name} is {shown(value)} — expected fields and values")
    return dataclasses.replace(default, **replaced)


def _build(kind: type[RecordT], values: Any, prefix: str) -> RecordT:
    """An instance of a dataclass from fields and values."""
    if not isinstance(values, dict):
        raise ConfigError(f"{prefix[:-1]} is {shown(values)} — expected fields and values")
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(cast(type[Any], kind))
    given: dict[str, Any] = {}
    for name, value in cast(dict[str, Any], values).items():
        _require_known(name, [field.name for field in fields], prefix)
        given[name] = _convert(value, hints[name], prefix + name)
    for field in fields:
        if field.name not in given and field.default is dataclasses.MISSING:
            raise ConfigError(f"{prefix}{field.name} is missing")
    try:
        return kind(**given)
    except ConfigError as error:
        raise ConfigError(f"{prefix}{error}") from error


def _require_known(name: object, known: Sequence[str], prefix: str) -> None:
    """Refuses a key that names no field; YAML's keys may be anything."""
    if name not in known:
        told = name if isinstance(name, str) and len(name) <= 60 else shown(name)
        near = difflib.get_close_matches(told, known, n=1)
        now = renamed(told)
        if now in known:
            raise ConfigError(
                f"unknown field {prefix}{told} — it is called {prefix}{now} now; "
                "`forethought migrate FILE --write` rewrites a file"
            )
        hint = f"did you mean {prefix}{near[0]}?" if near else f"known: {', '.join(known)}"
        raise ConfigError(f"unknown field {prefix}{told} — {hint}")


def _flat(values: Any, name: str, prefix: str = "") -> Iterator[Setting]:
    """Nested fields by their dotted names."""
    if not isinstance(values, dict):
        raise ConfigError(f"{name} is {shown(values)} — expected fields and values")
    for key, value in cast(dict[str, Any], values).items():
        if isinstance(value, dict):
            yield from _flat(value, f"{name}.{key}", f"{prefix}{key}.")
        else:
            yield Setting(f"{prefix}{key}", value)


def _nested(settings: Sequence[Setting]) -> dict[str, Any]:
    """Dotted names as fields within fields."""
    tree: dict[str, Any] = {}
    for name, value in settings:
        *groups, last = name.split(".")
        branch: Any = tree
        for group in groups:
            branch = branch.setdefault(group, {})
            if not isinstance(branch, dict):
                raise ConfigError(f"{group} is {shown(branch)} — expected fields and values")
        if last in branch:
            raise ConfigError(f"{name} is set twice")
        branch[last] = value
    return tree


def _convert(value: Any, hint: Any, name: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        return _convert(value, next(a for a in arguments if a is not type(None)), name)
    if origin is typing.Literal:
        if value not in arguments:
            raise ConfigError(f"{name} is {shown(value)} — expected {_either(arguments)}")
        return value
    if origin is tuple and arguments[0] is Setting:
        return tuple(_flat(value, name))
    if dataclasses.is_dataclass(hint):
        return _build(cast(type[Any], hint), value, f"{name}.")
    if origin is tuple:
        if not isinstance(value, list):
            raise ConfigError(f"{name} is {shown(value)} — expected a list")
        return tuple(
            _convert(item, arguments[0], f"{name}[{index}]")
            for index, item in enumerate(cast(list[Any], value))
        )
    return _convert_scalar(value, hint, name)


def _convert_scalar(value: Any, hint: type, name: str) -> Any:
    if hint is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)  # YAML 1.1 reads "1e-5", without a dot, as text
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    elif type(value) is hint and not (hint is int and abs(value) > _LARGEST):
        return value
    names = {float: "a finite number", int: "a whole number", str: "text", bool: "true or false"}
    raise ConfigError(f"{name} is {shown(value)} — expected {names[hint]}")


def _either(choices: tuple[Any, ...]) -> str:
    return " or ".join(str(choice) for choice in choices)

"""`forethought migrate`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from forethought.cli.flags import Operand, Switch
from forethought.configs.migration import migrate as migrated
from forethought.durable import write_text
from forethought.errors import ConfigError


@dataclass(frozen=True)
class Migrate:
    """A settings file of an earlier version."""

    file: Annotated[Path, Operand("FILE")]
    """A YAML file of settings or of a study, or a run folder (its config.yaml)."""

    write: Switch = False
    """Rewrite the file, instead of printing what it would be; the old one is kept beside it as
    FILE.old."""


def migrate(settings: Migrate) -> None:
    """Rewrite settings of an earlier version for this one; comments stay.

    Prints the new text; with --write it takes the place of the old one.

    Examples:
      forethought migrate my_ppo.yaml
      forethought migrate my_ppo.yaml --write
      forethought migrate runs/old --write
    """
    path = settings.file / "config.yaml" if settings.file.is_dir() else settings.file
    try:
        old = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    try:
        new, changes = migrated(old)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    for change in changes:
        print(f"{path}:{change.line}: {change.old} → {change.new}", file=sys.stderr)
    if not changes:
        print(f"{path}: nothing to change", file=sys.stderr)
    if not settings.write:
        print(new, end="")
    elif changes:
        write_text(path.with_name(f"{path.name}.old"), old)
        write_text(path, new)

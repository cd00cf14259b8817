"""The cells of a study: each stage of a variant, once per seed, with the code that it needs."""

import ast
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import forethought
from forethought.algorithms.registry import algorithm_of
from forethought.configs.contract import AnyConfig
from forethought.configs.file import (
    Setting,
    dump_config,
    load_any_config,
    with_settings,
)
from forethought.errors import ConfigError
from forethought.runs.run_folder import RunFolder
from forethought.studies.config import JudgingConfig, RowConfig, StageConfig, StudyConfig

_KEY_IN_NAME = 12
"""Hexadecimal digits of the key that a folder's name holds."""


@dataclass(frozen=True)
class Cell:
    """One stage with one seed."""

    config: AnyConfig
    """Resolved: with its seed, its run folder and the model that it starts from."""
    key: str
    """Equal exactly where the same training would be done."""
    start: "Cell | None"
    """The cell of the stage before."""

    @property
    def algorithm(self) -> str:
        """As the command line calls it: `sft`, `ppo`."""
        return algorithm_of(self.config).name

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.algorithm}_seed_{self.config.seed}_{self.key[:_KEY_IN_NAME]}"

    @property
    def folder(self) -> RunFolder:
        """Where it is trained."""
        return RunFolder(Path(self.config.output))

    @property
    def steps(self) -> int | None:
        """In the unit of the run's length; None where stored episodes decide how many (SFT of
        data, Q-SFT, ILQL, ArCHer)."""
        return self.config.length.planned


@dataclass(frozen=True)
class Row:
    """One configuration: for every seed, the cells of its stages."""

    name: str
    chains: tuple[tuple[Cell, ...], ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(chain[0].config.seed for chain in self.chains)

    @property
    def stages(self) -> int:
        return len(self.chains[0])

    def stage(self, number: int) -> tuple[Cell, ...]:
        """The cells of one stage, by seed."""
        return tuple(chain[number] for chain in self.chains)


@dataclass(frozen=True)
class Plan:
    """All that a study consists of."""

    name: str
    episodes: int
    """That every cell is judged on."""
    code: str
    """Version of the sources that determine results."""
    rows: tuple[Row, ...]
    also_judged: tuple[JudgingConfig, ...] = ()

    def cells(self, only: Sequence[str] = ()) -> list[Cell]:
        """Each cell once, in the order in which they are run: all rows with their first seed,
        then with their second, so that an unfinished study compares like with like.

        Args:
            only: names of rows; none means all of them.
        """
        rows = [row for row in self.rows if not only or row.name in only]
        longest = max((len(row.chains) for row in rows), default=0)
        ordered = (
            cell
            for position in range(longest)
            for row in rows
            for chain in row.chains[position : position + 1]
            for cell in chain
        )
        return list(dict.fromkeys(ordered))

    def rows_of(self, cell: Cell) -> list[str]:
        """Names of the rows that a cell is part of."""
        return [row.name for row in self.rows if any(cell in chain for chain in row.chains)]


def plan_study(file: Path, study: StudyConfig, output: Path, code: str) -> Plan:
    """Resolves every stage of every row for every seed.

    Args:
        file: that the study was read from, for errors to name.
        output: where the cells' run folders lie.
        code: version of the sources.

    Raises:
        ConfigError: a stage's file cannot be read, or an override is not one of its fields.
    """
    rows = [
        Row(row.name, tuple(_chains(row, study.seeds, output, code, f"{file}: rows[{number}]")))
        for number, row in enumerate(study.rows)
    ]
    return Plan(study.name, study.episodes, code, tuple(rows), study.also_judged)


def cell_key(config: AnyConfig, start: Cell | None, code: str) -> str:
    """SHA-256 of the settings, of the cell before and of the code. Where a run is written
    does not matter; of the model, only what made it."""
    model = config.model if start is None else "of the cell before"
    content = {
        "config": dump_config(replace(config, output="", model=model)),
        "start": None if start is None else start.key,
        "code": code,
    }
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _chains(
    row: RowConfig, seeds: tuple[int, ...], output: Path, code: str, where: str
) -> Iterator[tuple[Cell, ...]]:
    configs = [_resolved(stage, f"{where}.stages[{n}]") for n, stage in enumerate(row.stages)]
    for seed in seeds if row.seeds is None else row.seeds:
        chain: list[Cell] = []
        for config in configs:
            seeded = with_settings(config, [Setting("seed", seed)])
            chain.append(_cell(seeded, chain[-1] if chain else None, output, code))
        yield tuple(chain)


def _resolved(stage: StageConfig, where: str) -> AnyConfig:
    field = "config"
    try:
        config = load_any_config(Path(stage.config))
        field = "overrides"
        return with_settings(config, stage.overrides)
    except ConfigError as error:
        raise ConfigError(f"{where}.{field}: {error}") from error


def _cell(config: AnyConfig, start: Cell | None, output: Path, code: str) -> Cell:
    if start is not None:
        config = replace(config, model=start.config.output)
    cell = Cell(config, cell_key(config, start, code), start)
    return replace(cell, config=replace(config, output=str(output / cell.name)))


SOURCES = (
    *("types.py", "configs", "libraries.py", "value_checks.py"),
    *("environments", "prompts", "models", "generation", "value_guided", "chat", "rollouts"),
    *("targets", "losses", "offline", "training", "algorithms", "evaluation"),
    *("runs/checkpoints.py", "runs/checkpoints.py"),
)
"""What decides the numbers: files, folders, and patterns of names. From which checkpoint a stage
starts is part of it. Commands, reports, benchmarks and studies only show them, and the rest of
`runs` stores them."""
PACKAGE = Path(forethought.__file__).parent


def code_version(package: Path = PACKAGE) -> str:
    """SHA-256 over the names and the syntax of the sources.

    Comments, docstrings and layout do not count: better words do not cost a day of training.
    """
    digest = hashlib.sha256()
    for path in sources(package):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode())
        digest.update(f"{_syntax(path)}\0".encode())
    return digest.hexdigest()


def sources(package: Path = PACKAGE) -> list[Path]:
    """The files that count."""
    found: list[Path] = []
    for name in SOURCES:
        for source in package.glob(name):
            found += source.rglob("*.py") if source.is_dir() else [source]
    return sorted(found)


def _syntax(path: Path) -> str:
    """A source without what stands beside the code: texts on their own explain, and do nothing."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            setattr(node, "body", [part for part in body if not _is_text(part)])  # noqa: B010
    return ast.dump(tree)


def _is_text(node: object) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )

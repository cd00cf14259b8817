"""The runs of a study: each stage of a variant, once per seed, with the code that it needs."""

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
from forethought.studies.config import (
    ExtraEvaluationConfig,
    StageConfig,
    StudyConfig,
    VariantConfig,
)

_KEY_IN_NAME = 12
"""Hexadecimal digits of the key that a folder's name holds."""


@dataclass(frozen=True)
class StudyRun:
    """One run of a study: one stage with one seed."""

    config: AnyConfig
    """Resolved: with its seed, its run folder and the model that it starts from."""
    key: str
    """Equal exactly where the same training would be done."""
    start: "StudyRun | None"
    """The run of the stage before."""

    @property
    def algorithm(self) -> str:
        """Name on the command line: `sft`, `ppo`."""
        return algorithm_of(self.config).name

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"{self.algorithm}_seed_{self.config.seed}_{self.key[:_KEY_IN_NAME]}"

    @property
    def folder(self) -> RunFolder:
        """Folder of the run."""
        return RunFolder(Path(self.config.output))

    @property
    def steps(self) -> int | None:
        """Planned length, in the unit of the run; None where stored episodes decide it (SFT on
        data, Q-SFT, ILQL, ArCHer)."""
        return self.config.length.planned


@dataclass(frozen=True)
class Variant:
    """One configuration: for every seed, the runs of its stages."""

    name: str
    chains: tuple[tuple[StudyRun, ...], ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(chain[0].config.seed for chain in self.chains)

    @property
    def stages(self) -> int:
        return len(self.chains[0])

    def stage(self, number: int) -> tuple[StudyRun, ...]:
        """The runs of one stage, by seed."""
        return tuple(chain[number] for chain in self.chains)


@dataclass(frozen=True)
class Plan:
    """A study, resolved: all its runs."""

    name: str
    episodes: int
    """Held-out episodes of every evaluation."""
    code: str
    """Version of the sources that determine results."""
    variants: tuple[Variant, ...]
    extra_evaluations: tuple[ExtraEvaluationConfig, ...] = ()

    def runs(self, only: Sequence[str] = ()) -> list[StudyRun]:
        """Each run once, in the order of training: all variants with their first seed,
        then with their second, so that an unfinished study compares like with like.

        Args:
            only: names of variants; none means all of them.
        """
        variants = [variant for variant in self.variants if not only or variant.name in only]
        longest = max((len(variant.chains) for variant in variants), default=0)
        ordered = (
            run
            for position in range(longest)
            for variant in variants
            for chain in variant.chains[position : position + 1]
            for run in chain
        )
        return list(dict.fromkeys(ordered))

    def variants_of(self, run: StudyRun) -> list[str]:
        """Names of the variants that share a run."""
        return [
            variant.name
            for variant in self.variants
            if any(run in chain for chain in variant.chains)
        ]


def plan_study(file: Path, study: StudyConfig, output: Path, code: str) -> Plan:
    """Resolves every stage of every variant for every seed.

    Args:
        file: the study file, for error messages.
        output: the folder of the run folders.
        code: version of the sources.

    Raises:
        ConfigError: a stage's file cannot be read, or an override is not one of its fields.
    """
    variants = [
        Variant(
            variant.name,
            tuple(_chains(variant, study.seeds, output, code, f"{file}: variants[{number}]")),
        )
        for number, variant in enumerate(study.variants)
    ]
    return Plan(study.name, study.episodes, code, tuple(variants), study.extra_evaluations)


def run_key(config: AnyConfig, start: StudyRun | None, code: str) -> str:
    """SHA-256 of the settings, of the run before and of the code. Where a run is written
    does not matter; of the model, only what made it."""
    model = config.model if start is None else "of the run before"
    content = {
        "config": dump_config(replace(config, output="", model=model)),
        "start": None if start is None else start.key,
        "code": code,
    }
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _chains(
    variant: VariantConfig, seeds: tuple[int, ...], output: Path, code: str, where: str
) -> Iterator[tuple[StudyRun, ...]]:
    configs = [_resolved(stage, f"{where}.stages[{n}]") for n, stage in enumerate(variant.stages)]
    for seed in seeds if variant.seeds is None else variant.seeds:
        chain: list[StudyRun] = []
        for config in configs:
            seeded = with_settings(config, [Setting("seed", seed)])
            chain.append(_study_run(seeded, chain[-1] if chain else None, output, code))
        yield tuple(chain)


def _resolved(stage: StageConfig, where: str) -> AnyConfig:
    field = "config"
    try:
        config = load_any_config(Path(stage.config))
        field = "overrides"
        return with_settings(config, stage.overrides)
    except ConfigError as error:
        raise ConfigError(f"{where}.{field}: {error}") from error


def _study_run(config: AnyConfig, start: StudyRun | None, output: Path, code: str) -> StudyRun:
    if start is not None:
        config = replace(config, model=start.config.output)
    run = StudyRun(config, run_key(config, start, code), start)
    return replace(run, config=replace(config, output=str(output / run.name)))


SOURCES = (
    *("types.py", "configs", "libraries.py"),
    *("environments", "prompts", "models", "generation", "value_guided", "chat", "rollouts"),
    *("targets", "losses", "offline", "training", "algorithms", "evaluation"),
    "runs/checkpoints.py",
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
    """A source without its docstrings."""
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

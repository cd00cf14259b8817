"""What a study file says: rows of stages, seeds, and how many episodes judge them.

    study_version: 1
    name: bandit
    seeds: [0, 1]
    episodes: 500
    rows:
      - name: whole answer
        stages:
          - config: configs/bandit_sft.yaml
          - config: configs/bandit_ppo.yaml
            overrides:
              thought_weight: 0.5

Paths are relative to the working directory, as in all settings.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forethought.configs.file import Setting, load_record
from forethought.configs.parts import SamplingConfig, require
from forethought.errors import ConfigError
from forethought.evaluation.evaluate import EvaluationSettings

STUDY_VERSION = 1
_FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SET_BY_THE_STUDY = {
    "seed": "the study's seeds set it",
    "output": "every cell has a run folder of its own",
}


@dataclass(frozen=True)
class StageConfig:
    """One training of a row; a later one starts from the model of the one before."""

    config: str
    """A file of settings, as `forethought train … --config` takes it."""

    overrides: tuple[Setting, ...] = ()
    """Fields that differ from the file, nested or dotted."""

    def __post_init__(self) -> None:
        for name, _ in self.overrides:
            reason = _SET_BY_THE_STUDY.get(name)
            if reason is not None:
                raise ConfigError(f"overrides.{name} cannot be set: {reason}")


@dataclass(frozen=True)
class RowConfig:
    """One configuration: a chain of stages."""

    name: str
    """As the table calls it."""

    stages: tuple[StageConfig, ...]
    """In the order in which they are trained."""

    seeds: tuple[int, ...] | None = None
    """By default, the study's."""

    def __post_init__(self) -> None:
        is_line = bool(self.name.strip()) and self.name.isprintable()
        require(is_line, "name", self.name, "a line of text")
        require(bool(self.stages), "stages", [], "one or more")
        if self.seeds is not None:
            _require_seeds(self.seeds)
        for number, stage in enumerate(self.stages):
            if number and any(setting.name == "model" for setting in stage.overrides):
                raise ConfigError(
                    f"stages[{number}].overrides.model cannot be set: "
                    "a later stage starts from the model of the one before"
                )


@dataclass(frozen=True)
class JudgingConfig:
    """How the cells are judged as well, without training for it: in a variant of their world, by
    sampled answers, or held to the actions that are open."""

    name: str
    """As the table calls it: letters, digits, `_`, `-` and `.`."""

    options: tuple[str, ...] = ()
    """`KEY=VALUE`, each in place of the cell's own option of that key, if it has one."""

    temperature: float = 0.0
    """Of the answers; 0 takes the most likely token."""

    constrain_actions: bool = False
    """Constrained decoding to admissible actions (`rollout.constrain_actions`)."""

    def __post_init__(self) -> None:
        is_name = _FOLDER_NAME.fullmatch(self.name) is not None
        require(is_name, "name", self.name, "letters, digits, _, - and .")
        require(self.temperature >= 0, "temperature", self.temperature, "0 or more")
        is_variant = bool(self.options) or self.temperature > 0 or self.constrain_actions
        expected = "one or more, or a temperature above 0, or constrain_actions"
        require(is_variant, "options", [], expected)
        for option in self.options:
            require("=" in option, "options", option, "KEY=VALUE")

    def settings(self, episodes: int) -> EvaluationSettings:
        """How so many episodes are answered."""
        return EvaluationSettings(
            episodes,
            sampling=SamplingConfig(
                temperature=self.temperature, constrain_actions=self.constrain_actions
            ),
        )

    def applied(self, options: Sequence[str]) -> tuple[str, ...]:
        """A cell's own options, changed to those that it is judged with."""
        changed = {_key(option) for option in self.options}
        return (*(own for own in options if _key(own) not in changed), *self.options)


@dataclass(frozen=True)
class StudyConfig:
    """Rows × seeds."""

    name: str
    """Of the folders that the study writes: letters, digits, `_`, `-` and `.`."""

    seeds: tuple[int, ...]
    """Each row is trained with each of them."""

    rows: tuple[RowConfig, ...]
    """The configurations to compare."""

    episodes: int = 500
    """Held-out episodes that every cell is judged on, the same for all."""

    also_judged: tuple[JudgingConfig, ...] = ()
    """Where else, each on as many episodes."""

    def __post_init__(self) -> None:
        is_name = _FOLDER_NAME.fullmatch(self.name) is not None
        require(is_name, "name", self.name, "letters, digits, _, - and .")
        _require_seeds(self.seeds)
        require(bool(self.rows), "rows", [], "one or more")
        require(self.episodes >= 1, "episodes", self.episodes, "1 or more")
        _require_names("rows", [row.name for row in self.rows])
        _require_names("also_judged", [judging.name for judging in self.also_judged])


def load_study(path: Path) -> StudyConfig:
    """Reads a study file.

    Raises:
        ConfigError: no such file, no YAML, another version, a field that is unknown or
            missing, a value of the wrong type or out of range. One line, naming the file.
    """
    return load_record(path, StudyConfig, version_field="study_version", version=STUDY_VERSION)


def _key(option: str) -> str:
    return option.partition("=")[0]


def _require_names(field: str, names: Sequence[str]) -> None:
    for name in names:
        require(names.count(name) == 1, field, name, "a name for each that no other has")


def _require_seeds(seeds: tuple[int, ...]) -> None:
    is_sound = bool(seeds) and len(set(seeds)) == len(seeds) and min(seeds) >= 0
    require(is_sound, "seeds", list(seeds), "one or more, each once, none below 0")

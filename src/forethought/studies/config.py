"""A study file: variants and their stages, seeds, and the number of evaluation episodes.

    study_version: 2
    name: bandit
    seeds: [0, 1]
    episodes: 500
    variants:
      - name: whole completion
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

STUDY_VERSION = 2
_FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SET_BY_THE_STUDY = {
    "seed": "the study's seeds set it",
    "output": "every run has a run folder of its own",
}


@dataclass(frozen=True)
class StageConfig:
    """One training of a variant; a later one starts from the model of the one before."""

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
class VariantConfig:
    """One configuration: a chain of stages."""

    name: str
    """Name in the table."""

    stages: tuple[StageConfig, ...]
    """In the order in which they are trained."""

    seeds: tuple[int, ...] | None = None
    """Seeds of this variant; by default, the study's."""

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
class ExtraEvaluationConfig:
    """A further evaluation of every run: with other options of the environment, with sampled
    completions, or with constrained decoding. Nothing is trained for it."""

    name: str
    """Name in the table: letters, digits, `_`, `-` and `.`."""

    options: tuple[str, ...] = ()
    """`KEY=VALUE`, each in place of the run's own option of that key, if it has one."""

    temperature: float = 0.0
    """Sampling temperature; 0 takes the most likely token."""

    constrain_actions: bool = False
    """Constrained decoding to admissible actions (`rollout.constrain_actions`)."""

    def __post_init__(self) -> None:
        is_name = _FOLDER_NAME.fullmatch(self.name) is not None
        require(is_name, "name", self.name, "letters, digits, _, - and .")
        require(self.temperature >= 0, "temperature", self.temperature, "0 or more")
        differs = bool(self.options) or self.temperature > 0 or self.constrain_actions
        expected = "one or more, or a temperature above 0, or constrain_actions"
        require(differs, "options", [], expected)
        for option in self.options:
            require("=" in option, "options", option, "KEY=VALUE")

    def settings(self, episodes: int) -> EvaluationSettings:
        """Settings of this evaluation on so many episodes."""
        return EvaluationSettings(
            episodes,
            sampling=SamplingConfig(
                temperature=self.temperature, constrain_actions=self.constrain_actions
            ),
        )

    def applied(self, options: Sequence[str]) -> tuple[str, ...]:
        """The options of this evaluation: a run's own, with those of `options` in their place."""
        changed = {_key(option) for option in self.options}
        return (*(own for own in options if _key(own) not in changed), *self.options)


@dataclass(frozen=True)
class StudyConfig:
    """A study: variants × seeds."""

    name: str
    """Name of the study's folder: letters, digits, `_`, `-` and `.`."""

    seeds: tuple[int, ...]
    """Each variant is trained with each of them."""

    variants: tuple[VariantConfig, ...]
    """The configurations to compare."""

    episodes: int = 500
    """Held-out episodes that every run is evaluated on, the same for all."""

    extra_evaluations: tuple[ExtraEvaluationConfig, ...] = ()
    """Further evaluations, each on as many episodes."""

    def __post_init__(self) -> None:
        is_name = _FOLDER_NAME.fullmatch(self.name) is not None
        require(is_name, "name", self.name, "letters, digits, _, - and .")
        _require_seeds(self.seeds)
        require(bool(self.variants), "variants", [], "one or more")
        require(self.episodes >= 1, "episodes", self.episodes, "1 or more")
        _require_names("variants", [variant.name for variant in self.variants])
        _require_names("extra_evaluations", [extra.name for extra in self.extra_evaluations])


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

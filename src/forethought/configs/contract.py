"""What the settings of every algorithm have, whatever the algorithm.

Code outside an algorithm's own folder uses this contract alone; nothing there asks
which class the settings are.

Some fields take more than they hold: a path of any kind for text, a name for an environment.

    PPOConfig(model=Path("runs/sft"), environment="NumberLine")

holds "runs/sft" and `EnvironmentConfig("NumberLine")`. A type checker sees a descriptor whose
`__set__` takes either; at run time the annotations are plain types, and `settle` converts.
"""

import dataclasses
import os
from dataclasses import Field, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    LoraConfig,
    OptimizerConfig,
    PromptConfig,
    RolloutConfig,
    require,
    require_common,
)


@dataclass(frozen=True)
class RunLength:
    """How far a run goes, and in what that is counted."""

    unit: str
    """`updates` (optimizer steps), `environment steps`, `passes over the pairs`."""

    per_line: int = 1
    """Units that one logged step takes, where the log does not say how many it took."""

    total: int | None = None
    """Units of the whole run; None where the stored episodes decide."""

    @property
    def planned(self) -> int | None:
        """Units of the lines that fit into the total: no line begins that could not keep
        within it."""
        return None if self.total is None else self.total // self.per_line * self.per_line

    def is_over(self, done: int) -> bool:
        """Whether no line follows after so many units."""
        return self.total is None or done + self.per_line > self.total


ENVIRONMENT_STEPS = "environment steps"
UPDATES = "updates"


class AnyConfig(Protocol):
    """Settings of an algorithm: a frozen dataclass that says these things.

    `Any` stands for fields that take more than they hold (`configs/contract.py`): a type checker
    sees a descriptor there, which no property of a protocol matches.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def model(self) -> Any:
        """Where the run starts: a run folder, a folder of `save_pretrained`, a hub id, or
        "tiny"."""
        ...

    @property
    def output(self) -> Any:
        """The run folder, as text."""
        ...

    @property
    def seed(self) -> int: ...

    @property
    def environment(self) -> Any:
        """`EnvironmentConfig`."""
        ...

    @property
    def prompt(self) -> PromptConfig: ...

    @property
    def compute(self) -> ComputeConfig: ...

    @property
    def data(self) -> Any:
        """Stored episodes to learn from; None where there are none."""
        ...

    @property
    def max_new_tokens(self) -> int | None:
        """The longest completion that the run samples; None where it samples no tokens."""
        ...

    @property
    def length(self) -> RunLength:
        """How far the run goes."""
        ...


class LanguageConfig(AnyConfig, Protocol):
    """Settings of an algorithm whose model reads and writes text."""

    @property
    def batch_size(self) -> int: ...

    @property
    def checkpoint_every(self) -> int: ...

    @property
    def lora(self) -> LoraConfig: ...

    @property
    def optimizer(self) -> OptimizerConfig: ...


class RolloutLanguageConfig(LanguageConfig, Protocol):
    """Settings of an algorithm whose model also plays while it is trained."""

    @property
    def rollout(self) -> RolloutConfig: ...


class OfflineConfig(LanguageConfig, Protocol):
    """Settings of an algorithm that learns values in phases, from stored episodes alone."""

    @property
    def data(self) -> Any: ...

    @property
    def gamma(self) -> float: ...

    @property
    def polyak_tau(self) -> float: ...


if TYPE_CHECKING:

    class PathField:
        """Holds text, takes any path."""

        def __get__(self, instance: object, owner: type) -> str: ...
        def __set__(self, instance: object, value: str | os.PathLike[str]) -> None: ...

    class OptionalPathField:
        """Holds text or None, takes any path or None."""

        def __get__(self, instance: object, owner: type) -> str | None: ...
        def __set__(self, instance: object, value: str | os.PathLike[str] | None) -> None: ...

    class EnvironmentField:
        """Holds the settings of an environment, takes its name as well."""

        def __get__(self, instance: object, owner: type) -> EnvironmentConfig: ...
        def __set__(self, instance: object, value: EnvironmentConfig | str) -> None: ...

    def path_field(default: str) -> PathField: ...
    def optional_path_field() -> OptionalPathField: ...
    def environment_field() -> EnvironmentField: ...
else:
    PathField, OptionalPathField, EnvironmentField = str, str | None, EnvironmentConfig

    def path_field(default):
        """A field that holds a path."""
        return default

    def optional_path_field():
        """A field that holds a path or, by default, None."""
        return

    def environment_field():
        """A field that holds an environment's settings."""
        return field(default_factory=EnvironmentConfig)


def settle(config: Any) -> None:
    """Turns paths into text, and an environment's name into its settings: the first thing that
    the `__post_init__` of an algorithm's settings does."""
    for one in dataclasses.fields(config):
        value = getattr(config, one.name)
        if isinstance(value, os.PathLike):
            object.__setattr__(config, one.name, os.fspath(value))
        elif one.name == "environment" and isinstance(value, str):
            object.__setattr__(config, one.name, EnvironmentConfig(value))


def require_offline(config: OfflineConfig) -> None:
    """What algorithms ask that learn values from stored episodes.

    Raises:
        ConfigError: naming the first field whose value is none of those that it may have.
    """
    require_common(config.seed, config.checkpoint_every)
    require(config.batch_size >= 1, "batch_size", config.batch_size, "1 or more")
    require(0 <= config.gamma <= 1, "gamma", config.gamma, "0 to 1")
    tau = config.polyak_tau
    require(0 < tau <= 1, "polyak_tau", tau, "above 0, at most 1")
    bins, expected = config.prompt.return_bins, "0: values need no return bin"
    require(bins == 0, "prompt.return_bins", bins, expected)


@property
def samples_nothing(config: object) -> None:
    """`max_new_tokens` of an algorithm that samples no tokens: None."""
    del config


@property
def data_decide(config: object) -> RunLength:
    """`length` of an algorithm that learns from stored episodes: as far as these decide."""
    del config
    return RunLength(UPDATES)


@property
def longest_of_rollout(config: RolloutLanguageConfig) -> int:
    """`max_new_tokens` of an algorithm whose model also plays: what a rollout samples."""
    return config.rollout.sampling.max_new_tokens

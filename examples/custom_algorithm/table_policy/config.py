"""Settings of `forethought train table`."""

from dataclasses import dataclass, field

from forethought.configs.contract import ENVIRONMENT_STEPS, RunLength
from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    OptimizerConfig,
    PromptConfig,
    require,
)


@dataclass(frozen=True)
class TableConfig:
    """REINFORCE with a table."""

    model: str = "table"
    """There is nothing to start from; the name alone."""

    output: str = "runs/table"
    """The run folder."""

    seed: int = 0
    """Of episodes and actions."""

    iterations: int = 50
    """Updates."""

    episodes_per_iteration: int = 16
    """Episodes of one update."""

    rows: int = 64
    """Rows of the table; a prompt's row is a checksum of its text."""

    environment: EnvironmentConfig = field(default_factory=lambda: EnvironmentConfig(id="Bandit"))
    prompt: PromptConfig = field(default_factory=PromptConfig)
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=0.1))
    compute: ComputeConfig = field(default_factory=ComputeConfig)

    def __post_init__(self) -> None:
        require(self.iterations >= 1, "iterations", self.iterations, "1 or more")

    @property
    def data(self) -> None:
        """None: it learns from its own episodes."""
        return None

    @property
    def max_new_tokens(self) -> None:
        """None: an action is no text."""
        return None

    @property
    def length(self) -> RunLength:
        """How far the run goes."""
        per_iteration = self.episodes_per_iteration
        return RunLength(ENVIRONMENT_STEPS, per_iteration, self.iterations * per_iteration)

"""Forethought trains vision-language and language models to act.

The model looks, thinks in words, acts, sees what happened, and learns from it.

    import forethought as ft

    run = ft.train(ft.PPOConfig(model="runs/sft", environment="NumberLine"))
    result = ft.evaluate(run, episodes=500)  # result.success.rate, .interval, .episodes
    ft.report(run)

Everything below is loaded when it is first used; `import forethought` itself loads nothing.
"""

import importlib
import sys

TYPE_CHECKING = False  # As `typing` has it, which alone takes longer to load than all of this.
if TYPE_CHECKING:
    from forethought.algorithms.archer.config import ArcherConfig
    from forethought.algorithms.dpo.config import DPOConfig
    from forethought.algorithms.ilql.config import ILQLConfig
    from forethought.algorithms.ppo.config import PPOConfig
    from forethought.algorithms.q_sft.config import QSFTConfig
    from forethought.algorithms.q_transformer.config import QTransformerConfig
    from forethought.algorithms.sft.config import SFTConfig
    from forethought.api import (
        collect,
        evaluate,
        load_policy,
        read_trajectories,
        report,
        train,
    )
    from forethought.configs.parts import (
        ComputeConfig,
        EnvironmentConfig,
        LoraConfig,
        OptimizerConfig,
        PromptConfig,
        RolloutConfig,
        SamplingConfig,
    )
    from forethought.environments import list_environments, make_environment
    from forethought.environments.check import check_environment
    from forethought.environments.reward import StepOutcome
    from forethought.errors import ForethoughtError

__version__ = "0.1.0"

_PLACES = {
    **dict.fromkeys(
        ("collect", "evaluate", "load_policy", "read_trajectories", "report", "train"), "api"
    ),
    **dict.fromkeys(
        (
            *("ComputeConfig", "EnvironmentConfig", "LoraConfig", "OptimizerConfig"),
            *("PromptConfig", "RolloutConfig", "SamplingConfig"),
        ),
        "configs.parts",
    ),
    **dict.fromkeys(("list_environments", "make_environment"), "environments"),
    "check_environment": "environments.check",
    "StepOutcome": "environments.reward",
    "ForethoughtError": "errors",
    "ArcherConfig": "algorithms.archer.config",
    "DPOConfig": "algorithms.dpo.config",
    "ILQLConfig": "algorithms.ilql.config",
    "PPOConfig": "algorithms.ppo.config",
    "QSFTConfig": "algorithms.q_sft.config",
    "QTransformerConfig": "algorithms.q_transformer.config",
    "SFTConfig": "algorithms.sft.config",
}
"""Which module has a name."""

__all__ = [  # noqa: RUF022 (in the order of use)
    "train",
    "evaluate",
    "report",
    "collect",
    "load_policy",
    "read_trajectories",
    "make_environment",
    "list_environments",
    "check_environment",
    "StepOutcome",
    "SFTConfig",
    "PPOConfig",
    "DPOConfig",
    "QSFTConfig",
    "QTransformerConfig",
    "ILQLConfig",
    "ArcherConfig",
    "EnvironmentConfig",
    "PromptConfig",
    "RolloutConfig",
    "SamplingConfig",
    "LoraConfig",
    "OptimizerConfig",
    "ComputeConfig",
    "ForethoughtError",
]

if "gymnasium" in sys.modules:
    # Then `gymnasium.make` knows our environments. Where it comes later, see `GymnasiumView`.
    importlib.import_module("forethought.environments")


def __getattr__(name: str) -> object:
    """Loads a name's module when the name is first used."""
    if name not in _PLACES:
        raise AttributeError(f"module 'forethought' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"forethought.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""What of a launch with DeepSpeed is refused, before DeepSpeed is loaded."""

import importlib.util
from types import SimpleNamespace
from typing import Any

import pytest

from forethought.errors import ConfigError
from forethought.training.zero import require_deepspeed, settle_config


def launched(stage: int, **config: Any) -> Any:
    """What Accelerate knows after a launch."""
    zero: dict[str, Any] = {"zero_optimization": {"stage": stage}}
    plugin = SimpleNamespace(zero_stage=stage, deepspeed_config=zero | config)
    return SimpleNamespace(state=SimpleNamespace(deepspeed_plugin=plugin))


def test_stage_2_adds_up_and_stays_in_fp32() -> None:
    accelerator = launched(2, gradient_accumulation_steps=8, bf16={"enabled": True})
    settle_config(accelerator)
    config = accelerator.state.deepspeed_plugin.deepspeed_config
    assert config["gradient_allreduce_op"] == "sum"
    assert config["gradient_accumulation_steps"] == 1
    assert not config["bf16"]["enabled"]


@pytest.mark.parametrize(
    ("stage", "config", "said"),
    [
        (1, {}, "zero_stage 1 — expected zero_stage: 2 in its config$"),
        (3, {}, "zero_stage 3 — .* adapters, too, and gather them for every token"),
        (2, {"optimizer": {"type": "AdamW"}}, "with optimizer in its config — expected none"),
        (2, {"scheduler": {"type": "WarmupLR"}}, "with scheduler in its config"),
        (
            2,
            {"zero_optimization": {"offload_optimizer": {"device": "cpu"}}},
            "with offload_optimizer in its config",
        ),
    ],
)
def test_what_is_refused(stage: int, config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        settle_config(launched(stage, **config))


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)
    with pytest.raises(ConfigError, match=r'run: pip install "forethought\[deepspeed\]"'):
        require_deepspeed()

"""Which weights of tokens may be asked for."""

from typing import Literal

import pytest

from forethought.algorithms.ppo.config import PPOConfig
from forethought.errors import ConfigError


@pytest.mark.parametrize("aggregation", ["sequence_mean", "sequence_sum"])
def test_of_tokens_alone(aggregation: Literal["sequence_mean", "sequence_sum"]) -> None:
    assert PPOConfig(ratio="token", loss_aggregation=aggregation).loss_aggregation == aggregation
    message = f"loss_aggregation is '{aggregation}' — expected token_mean with ratio step"
    with pytest.raises(ConfigError, match=message):
        PPOConfig(ratio="step", loss_aggregation=aggregation)

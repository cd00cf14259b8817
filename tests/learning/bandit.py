"""The one-step environment as a test of learning, and a teacher who is right in it half of the
time."""

import random
import re
from pathlib import Path

import numpy as np

from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    RolloutConfig,
    SamplingConfig,
)
from forethought.environments.contract import Environment, ExpertAction
from forethought.prompts.responses import write_response
from forethought.runs.metrics import read_metrics
from forethought.types import Observation

ARMS = 4
CHANCE = 1 / ARMS
ENVIRONMENT = EnvironmentConfig("Bandit", options=(f"arms={ARMS}",))
ROLLOUT = RolloutConfig(
    num_envs=32,
    steps_per_iteration=128,
    sampling=SamplingConfig(temperature=1.0, max_new_tokens=24),
    on_invalid="penalize",
)
ONE_THREAD = ComputeConfig(threads=1)
DICE = random.Random(0)


def half_right(environment: Environment, observation: Observation) -> str:
    """The expert's answer, a third of the time; otherwise one about a letter drawn at random."""
    del observation
    advice = environment.expert()
    assert environment.actions is not None
    if DICE.random() > 1 / 3:
        letter = DICE.choice(environment.actions)
        fields = [(name, re.sub(rf"\b{advice.action}\b", letter, v)) for name, v in advice.fields]
        advice = ExpertAction(letter, tuple(fields))
    return write_response(advice, "thoughts")


def success_in_training(run: Path) -> tuple[float, float]:
    """At the beginning and at the end."""
    rates = read_metrics(run / "metrics.jsonl").column("success_rate").values
    return float(rates[0]), float(np.mean(rates[-3:]))

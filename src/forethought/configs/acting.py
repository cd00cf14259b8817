"""How learned values act: settings that are stored beside the weights."""

import math
from dataclasses import dataclass
from typing import Literal

from forethought.configs.parts import require

PolicyExtraction = Literal["ratio", "probability"]
"""Of what the acting policy takes exp(β …): p/π, which is a value, or p itself (the paper)."""


@dataclass(frozen=True)
class ActingConfig:
    """How the learned probabilities act; nothing of it needs training again."""

    beta: float = 16.0
    """β of π^ ∝ π_φ exp(β …): 0 is the behavior policy, more trusts the values more. Paper: 1."""

    policy_extraction: PolicyExtraction = "ratio"
    """"ratio": p_θ/π_φ, cut to [0, 1], inside the support; "probability": p_θ (paper)."""

    top_p: float = 1.0
    """Nucleus of the acting policy that is kept (before any temperature); 1 keeps all."""

    def __post_init__(self) -> None:
        require(0 <= self.beta < math.inf, "acting.beta", self.beta, "0 or more")
        require(0 < self.top_p <= 1, "acting.top_p", self.top_p, "above 0, at most 1")


@dataclass(frozen=True)
class SupportConfig:
    """Which tokens count as known: the others' ratios are noise."""

    top_p: float = 1.0
    """Share of the behavior policy's mass, most likely tokens first."""

    min_probability: float = 1e-3
    """A token at least this likely under the behavior policy counts. Public code: 1e-4."""

    floor: float = 1e-3
    """Denominators of ratios are at least this."""

    def __post_init__(self) -> None:
        require(0 < self.top_p <= 1, "support.top_p", self.top_p, "above 0, at most 1")
        least = self.min_probability
        require(0 <= least < 1, "support.min_probability", least, "0 up to 1")
        require(0 < self.floor <= 1, "support.floor", self.floor, "above 0, at most 1")


@dataclass(frozen=True)
class ValueActingConfig:
    """How the learned values act; nothing of it needs training again."""

    beta: float = 16.0
    """β of π^ ∝ π_φ exp(β Q), Q in the world's units: 0 is the behavior policy, more trusts
    the values more. ILQL's code: 16 (20 Questions), 32 (Wordle)."""

    top_p: float = 1.0
    """Nucleus of the acting policy that is kept (before any temperature); 1 keeps all."""

    def __post_init__(self) -> None:
        require(0 <= self.beta < math.inf, "acting.beta", self.beta, "0 or more")
        require(0 < self.top_p <= 1, "acting.top_p", self.top_p, "above 0, at most 1")

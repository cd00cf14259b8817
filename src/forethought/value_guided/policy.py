"""Acting by values: a behavior policy, weighted by a second model that says what tokens are worth.

    π^ ∝ π_φ exp(β w)

Q-SFT reads w from a second language model's probabilities, ILQL from its value heads. Both models
read along in one decode loop; a saved model's folder holds both, and how they act.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from forethought.configs.acting import ActingConfig, SupportConfig, ValueActingConfig
from forethought.errors import PolicyError
from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.generation.decoding import DecodeLoop
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.losses.q_sft import likelihood_ratios, support_mask
from forethought.models.actor_critic import ActorCritic
from forethought.models.limits import Limits
from forethought.models.loading import BEHAVIOR
from forethought.types import Completion, Message, Prompt
from forethought.value_guided.models import (
    HEADS_FILE,
    VALUES,
    VALUES_SETTINGS,
    Twin,
    load_settings,
    load_twin,
    load_value_model,
    reads_values,
)

LIKELIHOOD = "likelihood"
"""Folder of p_θ, beside π_φ's, inside a saved model of Q-SFT."""
LIKELIHOOD_SETTINGS = "reweighted.json"

ActingT = TypeVar("ActingT")
Weigh = Callable[[Tensor, Tensor, ActingT], Tensor]
"""From the behavior's logits and the second model's, both [B, V], and how to act, to the
logits that are drawn from."""

FAR_BEHIND = 1e4
"""Nats: a probability of 0 beside any other token, and fp32 still tells a hundredth apart."""


def tilted(logprobs_BV: Tensor, values_BV: Tensor, *, beta: float, top_p: float) -> Tensor:
    """Logits of a policy that prefers what is worth more.

        log π^(a|s) = log π_φ(a|s) + β w(a|s) + constant

    Args:
        logprobs_BV: of π_φ, nats, fp32.
        worth_BV: w, fp32; what is the same for all tokens of a row does not count.
        beta: 0 is π_φ.
        top_p: nucleus that is kept; what it leaves out comes far behind, in the same order, so
            that a response which is held to such tokens alone still takes the likelier ones.

    Returns:
        [B, V], fp32.
    """
    logits_BV = logprobs_BV + beta * values_BV
    if top_p == 1:
        return logits_BV
    kept_BV = support_mask(
        logprobs_NV=torch.log_softmax(logits_BV, -1), top_p=top_p, min_probability=0.0
    )
    return torch.where(kept_BV, logits_BV, logits_BV - FAR_BEHIND)


def weigh_by_likelihood(
    behavior_BV: Tensor,
    likelihood_BV: Tensor,
    acting: ActingConfig,
    *,
    support: SupportConfig,
    residual: int | None = None,
) -> Tensor:
    """Logits of the acting policy.

        log π^(a|s) = log π_φ(a|s) + β w(a|s) + constant
        w = p_θ(a|s)                           "probability": Hong et al. 2024, Sec. 4.2
        w = clip(p_θ(a|s) / π_φ(a|s), 0, 1)    "ratio", which is Q* with a residual token

    Outside π_φ's support w is 0. β = 0 is π_φ. What a nucleus leaves out comes far behind.

    Args:
        behavior_BV, likelihood_BV: logits of π_φ and p_θ, fp32.
        acting: β, what w is, and the nucleus.
        residual: the token that p_θ puts on what no token is worth; it is worth nothing.

    Returns:
        [B, V], fp32.
    """
    logprobs_BV = torch.log_softmax(behavior_BV, -1)
    likelihood_logprobs_BV = torch.log_softmax(likelihood_BV, -1)
    support_BV = support_mask(
        logprobs_NV=logprobs_BV,
        top_p=support.top_p,
        min_probability=support.min_probability,
        residual=residual,
    )
    if acting.policy_extraction == "probability":
        values_BV = likelihood_logprobs_BV.exp().masked_fill(~support_BV, 0.0)
    else:
        values_BV = likelihood_ratios(
            likelihood_logprobs_NV=likelihood_logprobs_BV,
            behavior_logprobs_NV=logprobs_BV,
            support_NV=support_BV,
            floor=support.floor,
        ).clamp(max=1.0)
    return tilted(logprobs_BV, values_BV, beta=acting.beta, top_p=acting.top_p)


def weigh_by_values(behavior_BV: Tensor, q_BV: Tensor, acting: ValueActingConfig) -> Tensor:
    """Logits of the acting policy.

        log π^(a|s) = log π_φ(a|s) + β min(Q1, Q2)(s, a) + constant

    Snell et al. 2023, Sec. 4: exp(β (Q - V)), in which V(s) is the same for all tokens of a
    state and so part of the constant.

    Args:
        behavior_BV: logits of π_φ; a constant per row does not count.
        q_BV: the lower of both, in units of return, fp32.
        acting: β and the nucleus.

    Returns:
        [B, V], fp32.
    """
    logprobs_BV = torch.log_softmax(behavior_BV, -1)
    return tilted(logprobs_BV, q_BV, beta=acting.beta, top_p=acting.top_p)


class WeightedPolicy(Generic[ActingT]):
    """π^ ∝ π_φ exp(β w); satisfies `Policy`. Both models read along in one decode loop.

    What w is, and how β and a nucleus enter, is `weigh`'s: `weigh_by_likelihood` (Q-SFT) or
    `weigh_by_values` (ILQL).
    """

    def __init__(
        self,
        behavior: HuggingFacePolicy,
        worth: ActorCritic,
        acting: ActingT,
        *,
        weigh: Weigh[ActingT],
        slots: int,
    ) -> None:
        """
        Args:
            behavior: π_φ, whose prompts and tokens are the policy's.
            worth: what w is read from; of the same architecture.
            acting: settings, which `weigh` gets.
            slots: how many completions are generated at a time.
        """
        self.behavior = behavior
        self.worth = worth
        self._acting = acting
        self._weigh = weigh
        self._slots = slots
        self._loop: DecodeLoop | None = None

    @property
    def version(self) -> int:
        return self.behavior.version

    @property
    def preferred_image_size(self) -> int | None:
        return self.behavior.preferred_image_size

    @property
    def acting(self) -> ActingT:
        """How it acts now."""
        return self._acting

    def act_as(self, acting: ActingT) -> None:
        """Acts otherwise from now on, with the same weights.

        Raises:
            RuntimeError: requests are still being answered.
        """
        if self._loop is not None and self._loop.pending:
            raise RuntimeError(f"{self._loop.pending} requests are unanswered")
        self._acting, self._loop = acting, None

    @property
    def limits(self) -> Limits:
        """How long a sequence it can read."""
        return self.behavior.limits

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        return self.behavior.prompt(messages)

    def require_room(self, prompt: Prompt, max_new_tokens: int) -> None:
        """As `HuggingFacePolicy.require_room`."""
        self.behavior.require_room(prompt, max_new_tokens)

    def submit(self, request: GenerationRequest) -> None:
        if self._loop is None:
            self.behavior.module.eval()
            self.worth.eval()
            self._loop = DecodeLoop(
                self.behavior.module,
                self.behavior.encoder,
                slots=self._slots,
                others=[self.worth],
                mix=self._mix,
            )
        self._loop.submit(request)

    def advance(self) -> list[GenerationResult]:
        return [] if self._loop is None else self._loop.advance()

    def step(self) -> list[GenerationResult]:
        """As `TokenwisePolicy.step`."""
        return [] if self._loop is None else self._loop.step()

    def under_way(self, key: int) -> Completion | None:
        """As `TokenwisePolicy.under_way`."""
        return None if self._loop is None else self._loop.under_way(key)

    def cancel(self, key: int) -> None:
        """As `TokenwisePolicy.cancel`."""
        if self._loop is not None:
            self._loop.cancel(key)

    def _mix(self, logits: Sequence[Tensor]) -> Tensor:
        behavior_BV, values_BV = logits
        return self._weigh(behavior_BV, values_BV, self._acting)


# Saved models


@dataclass(frozen=True)
class Settings:
    """What acting needs beside the weights: `reweighted.json`."""

    acting: ActingConfig
    support: SupportConfig
    residual: int | None = None
    """The token that no data hold, where one was used (`residual_mass: token`)."""

    def save(self, folder: Path) -> None:
        """Writes them into a model's folder."""
        (folder / LIKELIHOOD_SETTINGS).write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Settings":
        """What `save` wrote.

        Raises:
            PolicyError: the file cannot be read, or is another one.
        """
        path = folder / LIKELIHOOD_SETTINGS
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            acting = ActingConfig(**content["acting"])
            support = SupportConfig(**content["support"])
            # "dummy" in runs of before 2026-11-24; neither in those of before 2026-11.
            return cls(acting, support, content.get("residual", content.get("dummy")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PolicyError(f"{path}: got no settings of a Q-SFT policy ({error})") from error


def reweighted(
    behavior: HuggingFacePolicy, likelihood: Twin, settings: Settings, *, slots: int
) -> WeightedPolicy[ActingConfig]:
    """π_φ weighted by p_θ.

    Args:
        behavior: π_φ.
        likelihood: p_θ.
        slots: how many completions are generated at a time.
    """
    weigh = partial(weigh_by_likelihood, support=settings.support, residual=settings.residual)
    return WeightedPolicy(behavior, likelihood.module, settings.acting, weigh=weigh, slots=slots)


def is_reweighted(folder: Path) -> bool:
    """Whether a model's folder holds two models that act together."""
    return (folder / LIKELIHOOD_SETTINGS).is_file() and (folder / LIKELIHOOD).is_dir()


def load_reweighted(folder: Path, *, slots: int) -> WeightedPolicy[ActingConfig]:
    """What a Q-SFT run's checkpoint holds, to act with, on the GPU if there is one.

    Raises:
        PolicyError: it cannot be loaded.
    """
    settings = Settings.load(folder)
    behavior = load_policy(str(folder / BEHAVIOR), slots=slots)
    likelihood = load_twin(folder / LIKELIHOOD, behavior)
    return reweighted(behavior, likelihood, settings, slots=slots)


def is_value_weighted(folder: Path) -> bool:
    """Whether a model's folder holds a policy and values that weigh it."""
    return (folder / VALUES_SETTINGS).is_file() and (folder / VALUES / HEADS_FILE).is_file()


def load_value_weighted(folder: Path, *, slots: int) -> WeightedPolicy[ValueActingConfig]:
    """What an ILQL run's checkpoint holds, to act with, on the GPU if there is one.

    Raises:
        PolicyError: it cannot be loaded.
    """
    acting = load_settings(folder)
    behavior = load_policy(str(folder / BEHAVIOR), slots=slots)
    values = reads_values(load_value_model(folder / VALUES, behavior))
    return WeightedPolicy(behavior, values, acting, weigh=weigh_by_values, slots=slots)


ActingPolicy = HuggingFacePolicy | WeightedPolicy[ActingConfig] | WeightedPolicy[ValueActingConfig]


def load_acting(source: str, *, slots: int) -> ActingPolicy:
    """A saved model to act with, on the GPU if there is one.

    Args:
        source: a model's folder, or hub id.
        slots: completions generated at a time.

    Raises:
        PolicyError: it cannot be loaded.
    """
    if is_reweighted(Path(source)):
        return load_reweighted(Path(source), slots=slots)
    if is_value_weighted(Path(source)):
        return load_value_weighted(Path(source), slots=slots)
    return load_policy(source, slots=slots)

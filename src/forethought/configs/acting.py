"""How a policy acts: by learned values, behind an OpenAI-compatible API, or by engines that write
its responses.

Where an endpoint is and what opens it are no settings: `OPENAI_BASE_URL` and `OPENAI_API_KEY` are
read from the environment, so that no key comes into a config file, a log or a report.
"""

import math
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from forethought.configs.parts import require

PolicyExtraction = Literal["ratio", "probability"]
"""Argument of exp(β …) in the acting policy: p/π, which is a value, or p itself (the paper)."""


@dataclass(frozen=True)
class ActingConfig:
    """Policy extraction of Q-SFT; no setting needs training again."""

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
    """Policy extraction of ILQL; no setting needs training again."""

    beta: float = 16.0
    """β of π^ ∝ π_φ exp(β Q), Q in the environment's units: 0 is the behavior policy, more trusts
    the values more. ILQL's code: 16 (20 Questions), 32 (Wordle)."""

    top_p: float = 1.0
    """Nucleus of the acting policy that is kept (before any temperature); 1 keeps all."""

    def __post_init__(self) -> None:
        require(0 <= self.beta < math.inf, "acting.beta", self.beta, "0 or more")
        require(0 < self.top_p <= 1, "acting.top_p", self.top_p, "above 0, at most 1")


@dataclass(frozen=True)
class ApiConfig:
    """Only for models named `api:NAME`."""

    style: Literal["plain", "react"] = "plain"
    """plain: the environment's prompt as it is. react: reason and act (Yao et al. 2023): a system
    message asks for a thought in free words before each action, and episodes of the environment's
    expert are shown first."""

    examples: int = 1
    """Episodes of the expert that `react` shows, never held-out ones. The
    paper's prompts hold 1 to 6."""

    concurrency: int = 8
    """Requests that are under way at the same time."""

    requests_per_minute: float | None = None
    """Highest rate of requests, retries included, evenly spread; by default unlimited."""

    timeout_s: float = 60.0
    """A request that takes longer counts as failed, and is tried again."""

    attempts: int = 6
    """How often a request is sent before it is given up: after 429, 5xx, a broken connection,
    half a response, or one that cannot be read. Waits double from 1 s up to 60 s, and are at
    least what Retry-After says."""

    prompt_price: float = 0.0
    """US dollars per million prompt tokens, for the sum that is printed at the end."""

    completion_price: float = 0.0
    """US dollars per million completion tokens."""

    def __post_init__(self) -> None:
        require(0 <= self.examples <= 100, "api.examples", self.examples, "0 to 100")
        require(1 <= self.concurrency <= 256, "api.concurrency", self.concurrency, "1 to 256")
        rate = self.requests_per_minute
        require(rate is None or rate > 0, "api.requests_per_minute", rate, "above 0")
        require(self.timeout_s > 0, "api.timeout_s", self.timeout_s, "above 0")
        require(1 <= self.attempts <= 100, "api.attempts", self.attempts, "1 to 100")
        for name in ("prompt_price", "completion_price"):
            require(getattr(self, name) >= 0, f"api.{name}", getattr(self, name), "0 or more")


@dataclass(frozen=True)
class GenerationConfig:
    """Which engines write the responses; none: this process does."""

    engine: tuple[str, ...] = ()
    """Addresses of engines that write all responses, `http://HOST:PORT`: `forethought serve`, or
    vLLM. Several are replicas: the requests of a lost one go to another one."""

    shared_folder: str | None = None
    """Where weights are published for the engines, a folder that they see under the same path; each
    run takes one of its own in it. By default `published` in the run folder."""

    max_staleness: int = 0
    """How many updates the weights that wrote a response may be behind; what is staler is written
    again. 0: on-policy."""

    importance_cap: float | None = None
    """C of truncated importance sampling: each response, or token with `ratio: token`, counts
    min(π / π_engine, C) times, for what engine and trainer make of equal weights differs; null:
    once. 2 is usual."""

    workers: bool = False
    """Whether `forethought work --run RUN` plays the episodes, in any number of processes that see
    the run folder; the trainer waits for them."""

    worker_silence_s: float = 60.0
    """A worker that was not heard of for so long has died: others play its episodes."""

    concurrency: int = 64
    """Requests under way at the same time."""

    timeout_s: float = 600.0
    """For one request; then it is asked of another engine."""

    patience_s: float = 600.0
    """Seconds that the run waits without a response of an engine or a worker; then it stops."""

    def __post_init__(self) -> None:
        for url in self.engine:
            require(_is_address(url), "generation.engine", url, "http://HOST:PORT")
        stale = self.max_staleness
        require(0 <= stale <= 100, "generation.max_staleness", stale, "0 to 100")
        cap = self.importance_cap
        require(cap is None or cap > 0, "generation.importance_cap", cap, "above 0, or null")
        is_served = bool(self.engine) or not self.workers
        require(is_served, "generation.workers", True, "false without generation.engine")
        count = self.concurrency
        require(1 <= count <= 1024, "generation.concurrency", count, "1 to 1024")
        for name in ("timeout_s", "patience_s", "worker_silence_s"):
            require(getattr(self, name) > 0, f"generation.{name}", getattr(self, name), "above 0")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_reachable = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_plain = not set(url) & set("@?# ") and parts.path in ("", "/")
        return is_reachable and is_plain and parts.port != 0
    except ValueError:  # A port that is no number.
        return False

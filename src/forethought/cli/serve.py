"""`forethought serve RUN`."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from forethought.agents.sources import Source, find_source
from forethought.cli.flags import Operand
from forethought.cli.next_command import environment_flags
from forethought.configs.parts import SamplingConfig, require
from forethought.errors import PolicyError
from forethought.libraries import load_quietly
from forethought.serving.admission import Limits
from forethought.serving.engine import Check, Engine
from forethought.serving.server import serving

if TYPE_CHECKING:
    from forethought.value_guided.policy import ActingPolicy


_BYTES_PER_TOKEN = 16
"""Text has three to six bytes per token in any language, with any usual tokenizer."""
_MOST_PROMPT_BYTES = 2**20
"""For models that name no longest sequence."""


@dataclass(frozen=True)
class Serve:
    """Which policy is served, where, and what clients may ask of it."""

    run: Annotated[str, Operand("RUN")]
    """A run folder (its newest checkpoint), one of its checkpoints, a folder of
    `save_pretrained`, or a hub id."""

    name: str | None = None
    """The model's name for clients; by default RUN as it was typed."""

    host: str = "127.0.0.1"
    """Address to listen at. The default is heard on this machine alone; 0.0.0.0 is heard by
    the whole network, which needs no key to ask."""

    port: int = 8000
    """0 takes a free one, which is printed."""

    max_new_tokens: int = 1024
    """Longest completion of a request; also the default of requests without `max_tokens`."""

    max_batch_size: int = 16
    """Completions that are generated at a time."""

    concurrency: int = 64
    """Requests that are in work or wait; more are refused (429)."""

    request_mib: int = 8
    """Size of a request, images included."""

    timeout_s: float = 120.0
    """Time for a request, from its headers to its response: 408 where the request is not complete
    by then, 504 where the response is not. The headers have 10 seconds at most."""

    weights_from: Path | None = None
    """Folder below which newer weights may be loaded while it serves: adapters by
    /v1/load_lora_adapter, all weights by /update_weights_from_disk. Name the `published` folder of
    the run that trains by this engine. By default the weights stay what they are."""

    seed: int = 0
    """Seed of requests that name none."""

    threads: int | None = None
    """CPU threads of PyTorch; by default OMP_NUM_THREADS, else one fewer than there are cores."""

    def __post_init__(self) -> None:
        for field in ("max_new_tokens", "max_batch_size", "concurrency", "request_mib"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "1 or more")
        require(0 <= self.port < 2**16, "port", self.port, "0 to 65535")
        require(self.timeout_s > 0, "timeout_s", self.timeout_s, "above 0")
        require(0 <= self.seed < 2**31, "seed", self.seed, "0 to 2147483647")


def serve(settings: Serve) -> None:
    """Serve a trained policy by the OpenAI-compatible API, for any client and for training.

    POST /v1/chat/completions takes messages (text, and one image each as a data URL), POST
    /v1/completions token ids; both temperature (0 takes the most likely token), top_p, n, stop,
    max_tokens, seed, logprobs, return_token_ids and stream. GET /v1/models lists the model and
    its adapters. Requests that come together share a batch. Ctrl-C stops the server.

    Examples:
      forethought serve runs/ppo
      forethought serve runs/ppo --name agent --port 9000 --max-new-tokens 256
      OPENAI_BASE_URL=http://127.0.0.1:9000/v1 forethought evaluate api:agent \\
          --environment.id Bandit
      forethought serve runs/sft --port 9000 --weights-from runs/ppo/published
    """
    source = find_source(settings.run)
    if source.is_api:
        raise PolicyError(f"{settings.run} is served already — name a run or a model's folder")
    load_quietly(threads=settings.threads)
    if source.open_policy is not None:
        raise PolicyError(f"{settings.run} has no words — serve a language model")
    from forethought.generation.huggingface import HuggingFacePolicy
    from forethought.serving.weights import ServedWeights

    policy, check = load_served(settings, Path(source.model))
    weights = ServedWeights(policy) if isinstance(policy, HuggingFacePolicy) else None
    engine = Engine(policy, check, seed=settings.seed, weights=weights)
    name = settings.name or settings.run.rstrip("/")
    limits = Limits(
        request_bytes=settings.request_mib * 2**20,
        concurrency=settings.concurrency,
        timeout_s=settings.timeout_s,
        prompt_bytes=prompt_bytes(policy),
        max_new_tokens=settings.max_new_tokens,
        weights_from=settings.weights_from,
    )
    with serving(engine, model=name, host=settings.host, port=settings.port, limits=limits) as url:
        print(f"serving {name} at {url}", flush=True)
        agent = shlex.quote(f"api:{name}")
        how = _played_as(source, policy.preferred_image_size, settings.max_new_tokens)
        print(f"try: OPENAI_BASE_URL={url} forethought evaluate {agent} {how}", file=sys.stderr)
        engine.wait()


def prompt_bytes(policy: "ActingPolicy") -> int:
    """How much text a prompt may have before its tokens are counted."""
    limits = policy.limits
    longest = limits.positions or limits.context
    return _MOST_PROMPT_BYTES if longest is None else longest * _BYTES_PER_TOKEN


def _played_as(source: Source, image_size: int | None, limit: int) -> str:
    """The flags with which a client plays as the run itself does; a placeholder where it is not
    known in which environment.

    Args:
        limit: tokens of the longest completion that is served.
    """
    usual = SamplingConfig().max_new_tokens
    longest = min(source.max_new_tokens or usual, limit)
    length = "" if longest == usual else f" --max-new-tokens {longest}"
    if source.config is None:
        return f"--environment.id NAME{length}"
    own = source.config
    return environment_flags(own.environment, own.prompt, image_size=image_size) + length


def load_served(settings: Serve, model: Path) -> "tuple[ActingPolicy, Check]":
    """The policy, and what refuses prompts that are too long for it.

    Raises:
        PolicyError: it cannot be loaded.
    """
    from forethought.value_guided.policy import load_acting

    policy = load_acting(str(model), slots=settings.max_batch_size)
    return policy, policy.require_room

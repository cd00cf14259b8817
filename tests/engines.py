"""Engines for tests: the server of this project, with a model of its own, in this process."""

import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import torch

from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.train import train_sft
from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    OptimizerConfig,
    PromptConfig,
)
from forethought.generation.contract import TokenwisePolicy
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.actor_critic import ValueHead
from forethought.models.loading import load_pretrained
from forethought.models.tiny import TinySize, make_tiny
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.task import Task, open_task
from forethought.runs.checkpoints import model_source
from forethought.serving.admission import Limits
from forethought.serving.engine import Engine
from forethought.serving.server import serving
from forethought.serving.weights import ServedWeights

SMALL = TinySize(hidden_size=32, intermediate_size=64, layers=2, heads=2, vision_hidden_size=16)
BANDIT = EnvironmentConfig("Bandit")


def bandit(prompt: PromptConfig | None = None) -> Task:
    """The one-step environment."""
    return open_task(BANDIT, prompt or PromptConfig(), default_image_size=None)


def save_model(folder: Path, task: Task, *, episodes: int = 8) -> Path:
    """A very small model with the words of an environment, that has learned nothing, and a critic
    that finds every state differently good."""
    torch.set_num_threads(1)
    answer = expert_response("thoughts")
    played = play(task.id, task.factory, task.prompter, answer, iter(range(episodes)))
    steps = [step for trajectory in played for step in trajectory.steps]
    texts = [s.prompt.messages[-1].text for s in steps] + [s.completion.text for s in steps]
    head = ValueHead(SMALL.hidden_size, generator=torch.Generator().manual_seed(0))
    torch.nn.init.normal_(head.layers[-1].weight, generator=torch.Generator().manual_seed(1))
    loaded = make_tiny(texts, seed=0, size=SMALL)
    HuggingFacePolicy(loaded, slots=1, value_head=head).save(folder)
    return folder


def teach(model: Path, folder: Path) -> Path:
    """A small model that has learned the form of a response, and which letters there are; in two
    seconds. It is right about one time in three."""
    config = SFTConfig(
        model=str(model),
        output=str(folder),
        environment=EnvironmentConfig("Bandit", options=("expert=random_choice",)),
        expert_steps=320,
        epochs=4.0,
        batch_size=16,
        optimizer=OptimizerConfig(learning_rate=1e-2, epsilon=1e-8),
        compute=ComputeConfig(threads=1),
    )
    return Path(model_source(str(train_sft(config))))


def free_port() -> int:
    """A port of this machine that nobody listens to at present."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextmanager
def engine_of(
    model: Path,
    weights_from: Path | None,
    *,
    port: int = 0,
    policy: TokenwisePolicy | None = None,
) -> Generator[str]:
    """A server of the model, as `forethought serve` makes it.

    Args:
        policy: answers instead of the model itself.

    Yields:
        Its address, for `generation.engine`.
    """
    own = HuggingFacePolicy(load_pretrained(str(model)), slots=8)
    engine = Engine(policy or own, own.require_room, seed=0, weights=ServedWeights(own))
    limits = Limits(
        request_bytes=2**22,
        concurrency=64,
        timeout_s=120.0,
        prompt_bytes=2**20,
        max_new_tokens=256,
        weights_from=weights_from,
    )
    with serving(engine, model="policy", host="127.0.0.1", port=port, limits=limits) as url:
        yield url.removesuffix("/v1")
    engine.stop()
    engine.wait()  # Raises what has ended it, if anything did.

"""Training data read from Parquet, beside the same trajectories held in memory.

Either side makes examples of the trajectories, lays them out as micro-batches, and, in the
second measurement, takes each through the tiny model, forward and backward, as supervised
fine-tuning does. The one reads them from a folder of shards (seal, decompression, records),
row group by row group; the other walks over a list. What the reader costs is the difference.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.speed.contract import BenchmarkResult, compare, side_by_side
from benchmarks.speed.preparation import one_thread
from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.batching import TokenBatch, build_batch, plan_rows
from forethought.models.tiny import IMAGE_SIZE, make_tiny
from forethought.offline.rows import to_example
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.store import read_shards, write_shard
from forethought.rollouts.task import open_task
from forethought.types import Trajectory

ENVIRONMENTS = ("Wordle", "EZPoints")
"""One of words, and one of images."""
EPISODES = 400
TRAINED_EPISODES = 40
PER_SHARD = 100
PAIRS = 3
BATCH = 32
MICRO_BATCH_TOKENS = 8192

Read = Callable[[], Iterable[Trajectory]]
"""Begins anew with every call."""
Learn = Callable[[HuggingFacePolicy, TokenBatch], None]
"""What is done with a micro-batch."""


def measure_store(
    *, episodes: int = EPISODES, trained_episodes: int = TRAINED_EPISODES, pairs: int = PAIRS
) -> Iterator[BenchmarkResult]:
    """Tokens per second, of prompts and answers, on one core.

    Args:
        episodes: of the expert, whose steps become batches.
        trained_episodes: the first of them, which a model is trained on.
    """
    with one_thread():
        for environment in ENVIRONMENTS:
            with TemporaryDirectory() as folder:
                yield from _measure(environment, Path(folder), episodes, trained_episodes, pairs)


def _measure(
    name: str, folder: Path, episodes: int, trained_episodes: int, pairs: int
) -> Iterator[BenchmarkResult]:
    trajectories = _play(name, episodes)
    texts = [step.completion.text for t in trajectories for step in t.steps]
    texts += [m.text for t in trajectories for step in t.steps for m in step.prompt.messages]
    policy = HuggingFacePolicy(make_tiny(texts, seed=0), slots=1)
    for what, count, learn in (
        ("batches", episodes, _nothing),
        ("updates", trained_episodes, _forward_and_backward),
    ):
        chosen = trajectories[:count]
        stored = folder / what
        stored.mkdir()
        for first in range(0, count, PER_SHARD):
            write_shard(stored / f"{first:07d}.parquet", chosen[first : first + PER_SHARD])
        from_disk: Read = partial(read_shards, stored)
        from_memory: Read = partial(iter, chosen)
        sides = [partial(_tokens_per_s, read, policy, learn) for read in (from_disk, from_memory)]
        for side in sides:
            side()  # Prompts are rendered once, and remembered by either side.
        measured = [side_by_side(*sides) for _ in range(pairs)]
        yield compare(f"store/{name}/{what}", "tokens/s", measured)


def _play(name: str, episodes: int) -> list[Trajectory]:
    task = open_task(EnvironmentConfig(name), PromptConfig(), default_image_size=IMAGE_SIZE)
    environment = task.factory()
    seeds = (episode_seed(Split.DEMONSTRATION, 0, index) for index in range(episodes))
    try:
        answer = expert_response("thoughts")
        return list(play(task.id, environment, task.prompter, answer, seeds))
    finally:
        environment.close()


def _tokens_per_s(read: Read, policy: HuggingFacePolicy, learn: Learn) -> float:
    started = perf_counter()
    tokens = 0
    steps = (step for trajectory in read() for step in trajectory.steps)
    while chosen := list(islice(steps, BATCH)):
        examples = [to_example(step, policy) for step in chosen]
        tokens += sum(example.length for example in examples)
        for rows in plan_rows(examples, MICRO_BATCH_TOKENS):
            batch = build_batch([[examples[i] for i in row] for row in rows], policy.encoder)
            learn(policy, batch)
    return tokens / (perf_counter() - started)


def _nothing(policy: HuggingFacePolicy, batch: TokenBatch) -> None:
    """The batch alone is wanted."""


def _forward_and_backward(policy: HuggingFacePolicy, batch: TokenBatch) -> None:
    scores = policy.module(batch)
    loss = -(scores.logprobs_BT * batch.mask_BT).sum() / batch.mask_BT.sum()
    loss.backward()
    policy.module.zero_grad(set_to_none=True)

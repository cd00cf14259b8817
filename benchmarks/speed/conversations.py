"""Whole episodes with prompts that begin as earlier ones did, beside reading each from its start.

One model, which is first taught to respond, plays the same held-out episodes twice, with the same
seeds: once as ever, and once with no beginning of a prompt taken over. Also the tokens of prompts
that go through the model, as a share of all tokens of prompts.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

from benchmarks.speed.contract import BenchmarkResult, Pair, compare
from benchmarks.speed.preparation import one_thread, train_briefly
from forethought.agents.sources import find_source
from forethought.configs.parts import (
    EnvironmentConfig,
    PromptConfig,
    SamplingConfig,
)
from forethought.generation import prompt_rows
from forethought.generation.decoding import DecodeLoop
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.rollouts.collector import Collector
from forethought.rollouts.seeding import Split
from forethought.rollouts.task import Task, open_task

ENVIRONMENTS = ("Wordle", "TwentyQuestions", "Chess")
OPTIONS = {"Chess": ("opponent=builtin",)}
"""The opponent that every machine has."""
PAIRS = 3
EPISODES = 64
SLOTS = 32
UPDATES_BEFORE = 120


def measure_conversations(
    *,
    environments: Sequence[str] = ENVIRONMENTS,
    pairs: int = PAIRS,
    episodes: int = EPISODES,
    updates_before: int = UPDATES_BEFORE,
) -> Iterator[BenchmarkResult]:
    """Every environment, on one core.

    Args:
        pairs: how often both sides play the episodes.
        updates_before: of supervised fine-tuning.
    """
    with one_thread():
        for name in environments:
            with TemporaryDirectory() as folder:
                yield from _measure(name, Path(folder), pairs, episodes, updates_before)


class _Played(NamedTuple):
    steps_per_s: float
    share: float
    """Of the tokens of prompts, those that went through the model, %."""


def _measure(
    name: str, folder: Path, pairs: int, episodes: int, updates_before: int
) -> Iterator[BenchmarkResult]:
    environment = EnvironmentConfig(id=name, options=OPTIONS.get(name, ()))
    model = find_source(str(train_briefly(environment, folder / "sft", updates_before))).model
    task = open_task(environment, PromptConfig(), default_image_size=None)
    worthwhile = prompt_rows.WORTHWHILE
    played: list[tuple[_Played, _Played]] = []
    for _ in range(pairs):
        ours = _play(task, load_policy(model, slots=SLOTS), episodes)
        try:
            prompt_rows.WORTHWHILE = 2.0  # No beginning is longer than its prompt.
            plain = _play(task, load_policy(model, slots=SLOTS), episodes)
        finally:
            prompt_rows.WORTHWHILE = worthwhile
        played.append((ours, plain))
    speeds = [Pair(ours.steps_per_s, plain.steps_per_s) for ours, plain in played]
    yield compare(f"conversations/{name}", "steps/s", speeds)
    shares = [Pair(ours.share, plain.share) for ours, plain in played]
    yield compare(f"conversations/{name}/computed", "% of prompts", shares, less_is_better=True)


class _Speaker:
    """The policy, with the count of its prompts' tokens in sight."""

    version = 0

    def __init__(self, policy: HuggingFacePolicy) -> None:
        self.prompt = policy.prompt
        self.loop = DecodeLoop(policy.module.eval(), policy.encoder, slots=SLOTS)
        self.submit, self.advance = self.loop.submit, self.loop.advance


def _play(task: Task, policy: HuggingFacePolicy, episodes: int) -> _Played:
    speaker = _Speaker(policy)
    with task.runner(SLOTS, 0) as runner:
        collector = Collector(
            environment_id=task.id,
            runner=runner,
            policy=speaker,
            prompter=task.prompter,
            sampling=SamplingConfig(temperature=1.0, max_new_tokens=48),
            split=Split.EVALUATION,
            run_seed=0,
        )
        started = perf_counter()
        collected = collector.collect_episodes(range(episodes))
        seconds = perf_counter() - started
    steps = sum(len(trajectory.steps) for trajectory in collected.trajectories)
    asked, computed = speaker.loop.prompts.tokens
    return _Played(steps / seconds, 100 * computed / asked)

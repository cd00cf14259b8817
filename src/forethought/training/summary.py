"""What an iteration of acting looked like, as numbers for the log."""

import sys
from collections.abc import Sequence
from functools import reduce
from time import perf_counter
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from forethought.rollouts.collector import Collected
from forethought.rollouts.thought_facts import ThoughtCounts, count_thoughts
from forethought.training.run import Run
from forethought.types import Metric, Step


class Stopwatch:
    """Wall-clock seconds between laps, for the log of timings."""

    def __init__(self) -> None:
        self.laps: list[Metric] = []
        self._last = perf_counter()

    def lap(self, name: str) -> None:
        """Ends a lap and names it."""
        now = perf_counter()
        self.laps.append(Metric(name, now - self._last))
        self._last = now


class StepSummary(NamedTuple):
    """What is averaged over steps."""

    mean_reward: float
    invalid_rate: float
    completion_tokens: float
    thought_logprob: float
    """Sum over the thought tokens, nats, as sampled."""
    action_logprob: float


def summarize_step(step: Step) -> StepSummary:
    """One step's part of those averages."""
    logprobs, split = step.completion.logprobs, step.action.thought_span.stop
    return StepSummary(
        mean_reward=step.reward,
        invalid_rate=float(not step.action.is_valid),
        completion_tokens=len(logprobs),
        thought_logprob=sum(logprobs[:split]),
        action_logprob=sum(logprobs[split:]),
    )


def summarize_collection(collected: Collected, run: Run) -> list[Metric]:
    """Episodes and steps of one iteration, over all processes."""
    episodes = run.gather(collected.episodes)
    trajectories = collected.trajectories
    steps = run.gather([summarize_step(step) for t in trajectories for step in t.steps])
    failures = run.gather([t.failure for t in trajectories if t.failure is not None])
    averages = np.array(steps, dtype=np.float64).mean(axis=0)
    counts = count_thoughts(step for t in trajectories for step in t.steps)
    thoughts = reduce(ThoughtCounts.plus, run.gather([counts]))
    return [
        Metric("episodes", len(episodes)),
        Metric("success_rate", _mean([float(episode.success) for episode in episodes])),
        Metric("mean_return", _mean([episode.total_reward for episode in episodes])),
        Metric("mean_episode_steps", _mean([float(episode.steps) for episode in episodes])),
        Metric("environment_failures", len(failures)),
        *(
            Metric(name, float(value))
            for name, value in zip(StepSummary._fields, averages, strict=True)
        ),
        *(
            Metric(name, count.hits / count.total)
            for name, count in zip(ThoughtCounts._fields, thoughts, strict=True)
            if count.total
        ),
    ]


def warn_if_all_invalid(iteration: int, metrics: Sequence[Metric], run: Run, model: str) -> None:
    """Says, after the first iteration, that no response named an action: from there on, rewards
    teach nothing, and the run would go on to its end without a word.

    Args:
        iteration: of these metrics, from 0.
        model: what the run started from.
    """
    rates = [metric.value for metric in metrics if metric.name == "invalid_rate"]
    if iteration == 0 and rates == [1.0] and run.process == 0:
        tqdm.write(
            f"warning: every response of the first iteration was invalid: {model} does not know "
            "this environment's form of response — train it first (`forethought train sft`), "
            "then name that run as --model",
            file=sys.stderr,
        )


CERTAIN = 0.8
"""InteractiveCOT, Fig. 6: actions below it are called dispersed."""


def steps_played(collected: Collected, run: Run) -> int:
    """Environment steps of an iteration, over all processes."""
    return sum(run.gather([sum(len(t.steps) for t in collected.trajectories)]))


def summarize_actions(collected: Collected, run: Run) -> list[Metric]:
    """How certain actions were, given their thoughts, over all processes: p(a|T) of the responses
    that held one, as sampled (Fig. 6)."""
    steps = [step for t in collected.trajectories for step in t.steps]
    probabilities = run.gather([p for step in steps if (p := action_probability(step)) is not None])
    return [
        Metric("environment_steps", steps_played(collected, run)),
        Metric("action_probability", _mean(probabilities)),
        Metric("collapsed_actions", _mean([float(p >= CERTAIN) for p in probabilities])),
    ]


def action_probability(step: Step) -> float | None:
    """p(a|T), of the action's whole token sequence; None where a response has none."""
    start, stop = step.action.action_span
    logprobs = step.completion.logprobs[start:stop]
    return float(np.exp(sum(logprobs))) if logprobs else None


def _mean(values: Sequence[float]) -> float:
    """Not a number where there are none: the log then has a gap."""
    return float(np.mean(values)) if values else float("nan")

"""The table of InteractiveCOT's parts, from evaluated run folders of one environment.

    forethought study configs/studies/interactive_cot.yaml
    python benchmarks/interactive_cot_table.py --plot odds.svg "SFT=runs/…" "PPO=runs/…,runs/…" …

Each argument names a row and its run folders, one per seed; differences are to the second row, on
the same held-out episodes. Sampled figures are those of the last iteration's training episodes.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from forethought.evaluation.statistics import (
    Rate,
    ThoughtRates,
    bootstrap_interval,
    thought_rates,
    wilson_interval,
)
from forethought.reports.histograms import action_probability
from forethought.rollouts.store import read_shard
from forethought.types import Trajectory

BARS = np.linspace(0.0, 1.0, 21)


class Row(NamedTuple):
    name: str
    greedy: list[list[Trajectory]]
    """Held-out episodes, of each seed."""
    last: list[list[Trajectory]]
    """Sampled episodes of the last iteration, of each seed; none after SFT."""


def read(argument: str) -> Row:
    name, _, folders = argument.rpartition("=")
    greedy, last = list[list[Trajectory]](), list[list[Trajectory]]()
    for folder in map(Path, folders.split(",")):
        held_out = folder / "evaluation_episodes.parquet"
        greedy.append(list(read_shard(held_out)) if held_out.exists() else [])
        shards = sorted((folder / "trajectories").glob("step_*.parquet"))
        last.append(list(read_shard(shards[-1])) if shards else [])
    return Row(name, greedy, last)


def rates(episodes: Sequence[Trajectory]) -> ThoughtRates:
    return thought_rates(step for t in episodes for step in t.steps)


def contradictions(episodes: Sequence[Trajectory]) -> Rate | None:
    """Of valid responses whose thought concludes an action, those that name another one."""
    found = [
        step.action.action not in facts.concluded_actions
        for t in episodes
        for step in t.steps
        if (facts := step.thought_facts) and facts.concluded_actions and step.action.is_valid
    ]
    return Rate.of(sum(found), len(found)) if found else None


def percent(rate: Rate | None) -> str:
    return "–" if rate is None else f"{100 * rate.share:.1f}"


def success(episodes: Sequence[Trajectory]) -> str:
    """Of whole episodes: PPO cuts its last ones."""
    ended = [t.success for t in episodes if t.is_finished]
    if not ended:
        return "–"
    low, high = wilson_interval(sum(ended), len(ended))
    return f"{100 * np.mean(ended):.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def difference(row: Row, base: Row) -> str:
    """Paired over episodes: the same start, of the same seed."""
    pairs = [
        float(ours[seed]) - float(theirs[seed])
        for first, second in zip(row.greedy, base.greedy, strict=False)
        for ours, theirs in [[{t.seed: t.success for t in e} for e in (first, second)]]
        for seed in ours.keys() & theirs.keys()
    ]
    if not pairs or row is base:
        return "–"
    low, high = bootstrap_interval(pairs, np.random.default_rng(0))
    return f"{100 * np.mean(pairs):+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def line(row: Row, base: Row) -> str:
    greedy, last = ([t for seed in seeds for t in seed] for seeds in (row.greedy, row.last))
    true, sampled = rates(greedy), rates(last)
    seeds = ", ".join(f"{100 * np.mean([t.success for t in s]):.1f}" for s in row.greedy if s)
    cells = [
        *(row.name, seeds or "–", success(greedy), difference(row, base)),
        *map(percent, (true.perception_accuracy, true.inference_accuracy)),
        percent(true.thought_action_consistency),
        *map(percent, (contradictions(greedy), true.strict_format)),
        *(success(last), percent(sampled.perception_accuracy)),
        *map(percent, (sampled.thought_action_consistency, contradictions(last))),
    ]
    return f"| {' | '.join(cells)} |"


def plot(rows: Sequence[Row], path: Path) -> None:
    """Histogram of p(a|T) of the last iteration's sampled responses (Fig. 6b)."""
    rows = [row for row in rows if any(row.last)]
    figure = Figure(figsize=(7.5, 1.5 * len(rows)), layout="constrained")
    for axes, row in zip(np.atleast_1d(figure.subplots(len(rows), 1)), rows, strict=True):
        steps = [step for seed in row.last for t in seed for step in t.steps]
        known = [p for step in steps if (p := action_probability(step)) is not None]
        axes.hist(known, bins=BARS.tolist(), weights=np.full(len(known), 1 / len(known)))
        axes.set_title(row.name, fontsize=9, loc="left")
        axes.set_ylim(0, 1)
        axes.set_ylabel("share")
    axes.set_xlabel("p(action | thoughts), sampled")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    rows = [read(argument) for argument in given.rows]
    base = rows[min(1, len(rows) - 1)]
    print(
        "| | success of each seed, % | together | difference to "
        f"{base.name}, points | perception, % | comparison, % | thought names action, % "
        "| another one, % | strict format, % | sampled: success | perception | names action "
        "| another one |"
    )
    print(f"|{'---|' * 13}")
    for row in rows:
        print(line(row, base))
    if given.plot is not None:
        plot(rows, given.plot)


if __name__ == "__main__":
    main()

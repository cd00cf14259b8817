"""How does a method grow with the model? A plot of a study whose variants are "SIZE: METHOD".

    python benchmarks/model_sizes.py configs/studies/q_sft_sizes.yaml
    python benchmarks/model_sizes.py STUDY.yaml --extra sampled --svg sizes.svg

Across: the parameters of the model that acts, heads and copies for learning left out. Up: the mean
return on held-out episodes with its 95 % interval, a line for each method; also printed as a table.
After Q-SFT's Fig. 4 (Hong et al. 2024).
"""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure
from safetensors.numpy import load_file

from forethought.errors import ConfigError
from forethought.evaluation.statistics import Interval
from forethought.runs.checkpoints import model_source
from forethought.studies.config import load_study
from forethought.studies.plan import Plan, StudyRun, code_version, plan_study
from forethought.studies.running import read_outcome
from forethought.studies.summary import StageSummary, summarize

LOOKS = (
    ("#0072b2", "-", "o"),
    ("#d55e00", "--", "s"),
    ("#009e73", "-.", "^"),
    ("#666666", ":", "v"),
)

APART = 1.05
"""By so much methods stand beside each other, lest their intervals hide one another."""


class Point(NamedTuple):
    """One variant of the study."""

    size: str
    parameters: int
    mean_return: float
    interval: Interval


def read_points(plan: Plan, extra: str | None) -> dict[str, list[Point]]:
    """The finished variants of each method, smallest model first.

    Raises:
        ConfigError: a variant's name is no "SIZE: METHOD", or there is no such evaluation.
    """
    names = [each.name for each in plan.extra_evaluations]
    if extra is not None and extra not in names:
        raise ConfigError(f"--extra: got {extra}, expected {' or '.join(names) or 'none'}")
    variants = {variant.name: variant for variant in plan.variants}
    found: defaultdict[str, list[Point]] = defaultdict(list)
    summary = summarize(plan, [read_outcome(run, plan) for run in plan.runs()])
    for stage in summary.stages:
        size, separator, method = stage.variant.partition(": ")
        if not separator:
            raise ConfigError(f"variant {stage.variant!r}: expected a name like 'tiny: Q-SFT'")
        if stage.is_last and (evaluated := _evaluated(stage, names, extra)) is not None:
            parameters = count_parameters(variants[stage.variant].chains[0][0])
            found[method].append(Point(size, parameters, *evaluated))
    return {
        method: sorted(points, key=lambda one: one.parameters) for method, points in found.items()
    }


def _evaluated(
    stage: StageSummary, names: list[str], extra: str | None
) -> tuple[float, Interval] | None:
    pool = stage.pool if extra is None else stage.extra[names.index(extra)]
    if pool is None or pool.return_interval is None:
        return None
    return pool.mean_return, pool.return_interval


def count_parameters(run: StudyRun) -> int:
    """Of the model in a run's newest checkpoint; tied weights once, as they are stored."""
    weights = load_file(Path(model_source(str(run.folder.path)), "model.safetensors"))
    return sum(weight.size for weight in weights.values())


def draw(found: dict[str, list[Point]], svg: Path) -> None:
    """Writes the image."""
    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axes = figure.subplots()
    looks = zip(found.items(), LOOKS, strict=False)
    for number, ((method, points), (color, line, mark)) in enumerate(looks):
        middles = [point.mean_return for point in points]
        below = [point.mean_return - point.interval.low for point in points]
        above = [point.interval.high - point.mean_return for point in points]
        axes.errorbar(
            [point.parameters * APART**number for point in points],
            middles,
            yerr=[below, above],
            color=color,
            linestyle=line,
            marker=mark,
            capsize=3,
            label=method,
        )
    sizes = {point.parameters: point.size for points in found.values() for point in points}
    axes.set_xscale("log")
    axes.set_xticks(list(sizes), [f"{name}\n{n / 1e6:.2f} M" for n, name in sizes.items()])
    axes.minorticks_off()
    axes.set_xlabel("parameters")
    axes.set_ylabel("return, held-out episodes, 95 %")
    axes.legend(frameon=False)
    figure.savefig(svg, format="svg", metadata={"Date": None})


def main() -> None:
    """Prints the table and draws the image."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("study")
    parser.add_argument(
        "--extra", help="a name under extra_evaluations; by default, greedy decoding"
    )
    parser.add_argument("--output", help="of the study, where it was not runs/studies/NAME")
    parser.add_argument("--svg", help="by default docs/results/NAME/sizes.svg")
    options = parser.parse_args()
    study = load_study(Path(options.study))
    output = Path(options.output or f"runs/studies/{study.name}")
    plan = plan_study(Path(options.study), study, output, code_version())
    found = read_points(plan, options.extra)
    svg = Path(options.svg or f"docs/results/{study.name}/sizes.svg")
    svg.parent.mkdir(parents=True, exist_ok=True)
    draw(found, svg)
    for method, points in found.items():
        for size, parameters, mean, (low, high) in points:
            print(f"{method:<24}{size:<12}{parameters:>12,}  {mean:7.2f} [{low:.2f}, {high:.2f}]")
    print(svg)


if __name__ == "__main__":
    main()

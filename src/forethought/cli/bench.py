"""`forethought bench`: runs the measuring instruments of a checkout, which no package contains."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Protocol, cast

from forethought.cli.flags import Operand, Switch
from forethought.cli.settings import describe
from forethought.errors import MissingDependencyError

CHECKOUT = Path(__file__).parents[3]
"""Where `benchmarks/` is, if this file is one of a checkout."""


class _Speed(Protocol):
    """`benchmarks/speed`."""

    def measure(self, names: Sequence[str], *, as_json: bool) -> None: ...


@dataclass(frozen=True)
class Bench:
    """What is measured."""

    names: Annotated[tuple[str, ...], Operand("[NAME ...]")] = ()
    """Benchmarks; `all` runs every one. Without a name they are listed."""

    json: Switch = False
    """Print a JSON list, for programs."""


def bench(settings: Bench) -> None:
    """Measure speed, beside a baseline: both run in turn, in this process, on one core.

    environments  steps per second with images, beside Gymnasium's own vector loop; of WebShop
                  and of the robot; where Stockfish is there, games of chess with two engines
                  beside one (two cores).
    alfworld      milliseconds per start and per step beside the package's own engine, on 200
                  games in which both must say the same; games made per second, and how many
                  of 600 the expert solves. Needs the extra; takes a quarter of an hour.
    decoding      tokens per second, beside Hugging Face's `generate`: as our equal (dtype,
                  distribution, logits kept), and at its defaults, as a plain user calls it.
    conversations steps per second of Wordle, 20 Questions and chess, where of a prompt that
                  begins as an earlier one only the rest is computed, beside every prompt
                  from its start; and the share of the prompts' tokens that is computed.
    ppo           whole iterations in environment steps per second, beside the plain loop:
                  one environment, completions generated and scored one by one, updates of one
                  step at a time. Checks first that both give equal log-probs and gradients.
    q_sft         training tokens per second of Q-SFT's second phase, with its two further
                  forward passes, beside supervised fine-tuning on the same rows.
    store         tokens per second of training data read from Parquet, beside the same data in
                  memory: laid out as batches, and taken through the tiny model.
    processes     steps per second of SFT and PPO in two processes of one thread each, beside one
                  process of two threads. Takes two cores.
    threads       seconds per training step alone, beside the same with another process that
                  takes a core: by number of threads and by how they wait.

    The ratio is the median over the pairs, with the lowest and the highest; above 1 ours is
    faster. Peak is the most memory that the process held meanwhile, ours and the baseline's:
    both sides' weights and Python itself are in it, so compare the difference. Leave the
    machine alone meanwhile. `all` takes an hour or more; without a name nothing is measured.

    The benchmarks run from a checkout of the repository; an installed package has none.

    Examples:
      forethought bench environments
      forethought bench decoding ppo
      forethought bench ppo --json > ppo.json
    """
    if settings.names:
        _speed().measure(settings.names, as_json=settings.json)
    else:
        print(describe(bench))


def _speed() -> _Speed:
    """The instruments.

    Raises:
        MissingDependencyError: this is an installed package, not a checkout.
    """
    if not (CHECKOUT / "benchmarks" / "speed").is_dir():
        raise MissingDependencyError(
            "benchmarks run from a checkout, and this is an installed package — clone the "
            "repository, run `make setup` in it, then `.venv/bin/forethought bench` there"
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))
    return cast(_Speed, import_module("benchmarks.speed"))

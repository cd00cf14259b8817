"""WebShop without a model: who shops how well on the test goals, and how fast the shop is.

python benchmarks/webshop.py rows         # the table of docs/environments/webshop.md
python benchmarks/webshop.py speed        # CPU time and memory of one process
"""

import sys
from pathlib import Path
from time import process_time

import numpy as np

from forethought.environments.webshop.generator import generate_catalogue
from forethought.environments.webshop.webshop import EVALUATION_SEEDS, WebShop
from forethought.evaluation.statistics import bootstrap_interval, wilson_interval

GOALS = 500
SHOPPERS = ("random", 0.0, 0.4, 0.7, "expert")
"""Numbers are the weak shopper's skill."""


def play(environment: WebShop, shopper: str | float, seed: int) -> tuple[float, int]:
    """Score and length of an episode."""
    environment.reset(EVALUATION_SEEDS + seed)
    random = np.random.default_rng(seed)
    weak = environment.data_policy(shopper if isinstance(shopper, float) else 0.0, random)
    steps = 0
    while actions := environment.legal_actions():
        if shopper == "random":
            action = actions[random.integers(len(actions))]
        else:
            action = (environment.expert() if shopper == "expert" else weak()).action
        environment.step(action)
        environment.observation()
        steps += 1
    return environment.purchase.total, steps


def rows() -> None:
    for per_page in (10, 5):
        environment = WebShop(per_page=per_page)
        for shopper in SHOPPERS:
            played = [play(environment, shopper, seed) for seed in range(GOALS)]
            scores = [score for score, _ in played]
            wins = sum(score == 1 for score in scores)
            low, high = bootstrap_interval(scores, np.random.default_rng(0))
            rate = wilson_interval(wins, GOALS)
            print(
                f"{per_page:2} a page  {shopper!s:8} score {np.mean(scores):.3f} [{low:.3f}, "
                f"{high:.3f}]  success {wins / GOALS:.1%} [{rate[0]:.1%}, {rate[1]:.1%}]  "
                f"{np.mean([steps for _, steps in played]):.2f} steps"
            )


def speed() -> None:
    before, started = held(), process_time()
    generate_catalogue(0)
    made, between = held(), process_time()
    environment = WebShop()
    environment.reset(0)
    print(f"before           {before:.0f} MiB")
    print(f"catalogue        {between - started:.2f} s, {made - before:.0f} MiB more")
    print(f"search index     {process_time() - between:.2f} s, {held() - made:.0f} MiB more")
    for name in ("queries new", "cached", "cached", "cached"):
        since = process_time()
        steps = sum(play(environment, "random", seed)[1] for seed in range(200))
        print(f"{name:16} {steps / (process_time() - since):,.0f} steps per second of CPU time")
    print(f"at the end       {held():.0f} MiB")


def held() -> float:
    """Memory of this process, MiB."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * 4096 / 2**20


if __name__ == "__main__":
    {"rows": rows, "speed": speed}[sys.argv[1]]()

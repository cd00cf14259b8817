"""Memory of the processes that host environments (`--environment.workers`).

python -m benchmarks.worker_memory
"""

import random
from functools import partial
from typing import Any

import psutil

from forethought.environments import make_environment
from forethought.environments.vector import Act, Observed, Reset, SubprocessRunner

ENVIRONMENTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Bandit", {}),
    ("Sokoban", {"view": "text"}),
    ("Chess", {"start": "kqk", "board": "pieces", "notation": "san"}),
    ("gym:FrozenLake-v1", {}),
    ("gym:Taxi-v4", {}),
    ("gym:CliffWalking-v1", {}),
    ("gym:minigrid:MiniGrid-DoorKey-5x5-v0", {}),
    ("gym:minigrid:BabyAI-GoToRedBall-v0", {}),
    ("WebShop", {"view": "text_rich"}),
    ("Manipulation", {"view": "state"}),
    ("Manipulation", {"image_size": 64}),
)
STEPS = 40
"""Of each instance, by random legal actions."""


def main() -> None:
    """Prints what a process has of its own, in MiB, with 1 and with 16 instances in it."""
    for name, options in ENVIRONMENTS:
        sizes = [_memory_mib(name, options, instances) for instances in (1, 16)]
        print(name, options, *sizes, flush=True)


def _memory_mib(name: str, options: dict[str, Any], slots: int) -> int:
    """Memory of a worker after it played, less what it shares with its parent's libraries."""
    factory = partial(make_environment, name, **options)
    with SubprocessRunner(factory, slots, workers=1, timeout_s=60) as runner:
        _play(runner, slots)
        [worker] = runner.process_ids
        return psutil.Process(worker).memory_full_info().uss >> 20


def _play(runner: SubprocessRunner, slots: int) -> None:
    generator = random.Random(0)
    for slot in range(slots):
        runner.send(slot, Reset(slot))
    left = STEPS * slots
    outstanding = slots
    while outstanding:
        for result in runner.receive():
            outstanding -= 1
            if left == 0:
                continue
            legal = result.legal_actions if isinstance(result, Observed) else ()
            command = Act(generator.choice(legal)) if legal else Reset(left)
            runner.send(result.slot, command)
            outstanding += 1
            left -= 1


if __name__ == "__main__":
    main()

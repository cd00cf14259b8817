"""Keeps workers of a run alive on a Ray cluster.

    ray start --head                                         # on one machine
    ray start --address HEAD:6379                            # on each of the others
    python deploy/ray_workers.py --run /shared/runs/ppo --workers 16

Each worker is `forethought work` in a process of its own, on whatever machine has a CPU free. One
that dies, with its machine or alone, is started again elsewhere; when the run is over, they end.
"""

import argparse
import subprocess
import sys

import ray


@ray.remote(num_cpus=1, max_retries=-1, retry_exceptions=True)
def work(run: str, num_envs: int) -> str:
    """Plays until the run is over; what ended it otherwise is raised, and Ray tries again."""
    command = [sys.executable, "-m", "forethought", "work", "--run", run]
    finished = subprocess.run(
        [*command, "--num-envs", str(num_envs)], capture_output=True, text=True, check=False
    )
    if finished.returncode != 0:
        raise RuntimeError(finished.stderr.strip().splitlines()[-1])
    return finished.stdout.strip()


def main() -> None:
    """Starts the workers, and prints what each of them did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", required=True, help="the run's folder, as every machine sees it")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--num-envs", type=int, default=8, help="episodes of one worker at a time")
    parser.add_argument("--address", default="auto", help="of the cluster; local starts one here")
    given = parser.parse_args()
    ray.init(address=given.address)
    waiting = [work.remote(given.run, given.num_envs) for _ in range(given.workers)]
    while waiting:
        done, waiting = ray.wait(waiting)
        print(ray.get(done[0]), flush=True)


if __name__ == "__main__":
    main()

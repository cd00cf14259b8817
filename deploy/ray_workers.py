"""Keeps workers of a run alive on a Ray cluster.

    ray start --head                                         # on one machine
    ray start --address HEAD:6379                            # on each of the others
    python deploy/ray_workers.py --run /shared/runs/ppo --workers 16

Each worker is `forethought work`, on whatever machine has a CPU free. One that dies, with its
machine or alone, is started again elsewhere; when the run is over, they end. Ray lets its workers
give way to all else that a machine does: RAY_worker_niceness=0 before `ray start` ends that.
"""

import argparse
import contextlib
import io
import sys

import ray

from forethought.cli.main import main as forethought


@ray.remote(num_cpus=1, max_retries=-1)
def work(run: str, num_envs: int) -> tuple[int, str]:
    """Plays until the run is over, in Ray's own process, so that it ends with that.

    What Ray tries again is a lost process. An error that a person can fix is a line on stderr.

    Returns:
        The exit code, and what was printed.
    """
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = forethought(["work", "--run", run, "--num-envs", str(num_envs)])
    return code, said.getvalue().strip() or f"a worker ended with exit code {code}"


def main() -> int:
    """Starts the workers, and prints what each of them did.

    Returns:
        The largest of their exit codes.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", required=True, help="the run's folder, as every machine sees it")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--num-envs", type=int, default=8, help="episodes of one worker at a time")
    parser.add_argument("--address", default="auto", help="of the cluster; local starts one here")
    given = parser.parse_args()
    ray.init(address=given.address)
    waiting = [work.remote(given.run, given.num_envs) for _ in range(given.workers)]
    worst = 0
    while waiting:
        done, waiting = ray.wait(waiting)
        code, said = ray.get(done[0])
        print(said, flush=True)
        worst = max(worst, code)
    return worst


if __name__ == "__main__":
    sys.exit(main())

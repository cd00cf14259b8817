"""Workers on a Ray cluster of two nodes, by the recipe of `deploy/`; one node is lost."""

import os
import subprocess
import sys
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.store import read_shards
from tests.durability.commands import TIMEOUT_S, fork, wait_for
from tests.engines import bandit, engine_of, save_model
from tests.skips import needs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason=needs("Ray", "pip install ray==2.60.0")),
]

RECIPE = Path(__file__).parents[2] / "deploy" / "ray_workers.py"
STEPS = 160
STORE = 80 * 2**20
"""Bytes of a node's object store, which nothing is put into: the least that Ray takes."""


@pytest.mark.filterwarnings("ignore")
def test_a_node_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends, and learned from every episode once; the recipe and its workers end with it."""
    from ray.cluster_utils import Cluster

    # Ray's workers give way to everything else, for ever on a machine that has much to do.
    monkeypatch.setenv("RAY_worker_niceness", "0")
    model, run = save_model(tmp_path / "model", bandit()), tmp_path / "run"
    flags = [
        *("--model", str(model), "--output", str(run), "--environment.id", "Bandit"),
        *("--total-steps", str(STEPS), "--rollout.num-envs", "8"),
        *("--rollout.steps-per-iteration", "8", "--rollout.max-new-tokens", "12"),
        *("--batch-size", "8", "--epochs", "1", "--compute.threads", "1"),
        *("--generation.workers", "--generation.worker-silence-s", "6", "--generation.engine"),
    ]
    with ExitStack() as stack:
        url = stack.enter_context(engine_of(model, tmp_path))
        cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 1,
                "object_store_memory": STORE,
                "include_dashboard": False,
            },
        )
        stack.callback(cluster.shutdown)
        lost = cluster.add_node(num_cpus=1, object_store_memory=STORE)
        recipe = subprocess.Popen(
            [
                *(sys.executable, str(RECIPE), "--run", str(run), "--num-envs", "2"),
                *("--workers", "2", "--address", cluster.address),
            ],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        stack.callback(recipe.kill)
        log = tmp_path / "trainer.log"
        trainer = fork(["train", "ppo", *flags, url], log, log)
        stack.callback(trainer.kill)
        wait_for(lambda: players_of(run) == 2, lambda: recipe.poll() is None)
        cluster.remove_node(lost, allow_graceful=False)
        trainer.join(TIMEOUT_S)
        assert trainer.exitcode == 0, log.read_text()
        out, err = recipe.communicate(timeout=TIMEOUT_S)
        assert recipe.returncode == 0, err
    seeds = [trajectory.seed for trajectory in read_shards(run / "trajectories")]
    assert sorted(seeds) == sorted(episode_seed(Split.TRAINING, 0, n) for n in range(STEPS))
    ended = [line for line in out.splitlines() if line.endswith(f"episodes played for {run}")]
    assert len(ended) == 2
    assert sum(int(line.split()[0]) for line in ended) < STEPS  # The others are of the lost node.


def players_of(run: Path) -> int:
    """How many workers play at present."""
    players: set[str] = set()
    for claim in (run / "work" / "claims").glob("episode_*"):
        try:
            players.add(claim.read_text())
        except FileNotFoundError:  # It has just been played.
            continue
    return len(players)

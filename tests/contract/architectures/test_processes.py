"""Two processes learn what one learns."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forethought.configs.file import dump_config
from tests.contract.architectures.conftest import ReadCheckpoint
from tests.contract.architectures.runs import metrics_of, ppo

TRAIN = """
import sys
from pathlib import Path

from forethought.algorithms.ppo.config import PPOConfig
from forethought.configs.file import load_config
from forethought.algorithms.ppo.train import train_ppo

train_ppo(load_config(Path(sys.argv[1]), PPOConfig), existing="overwrite")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("llava", id="the last layer of the tower is idle"),
        pytest.param("llama", id="every weight has its part"),
    ],
)
def test_two_processes_equal_one(name: str, checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    results: list[list[dict[str, float]]] = []
    for processes in (1, 2):
        config = ppo(checkpoint_of(name), tmp_path / f"run_{processes}", iterations=2)
        file = tmp_path / f"{processes}.yaml"
        file.write_text(dump_config(config), encoding="utf-8")
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
        subprocess.run(
            [sys.executable, *launcher, str(script), str(file)],
            env=os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"},
            timeout=180,
            check=True,
        )
        results.append(metrics_of(Path(config.output)))
    for one, two in zip(*results, strict=True):
        assert two == pytest.approx(one, rel=1e-3, abs=1e-5, nan_ok=True)

"""Which updates belong to which phase; that a run goes on inside each, the algorithms' own tests
show."""

from pathlib import Path

import pytest

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.q_sft.train import train_q_sft
from forethought.errors import ConfigError
from forethought.training.phases import Stage, stages_of


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        # 80 episodes, 8 to an update: 10 updates a pass.
        pytest.param(
            [("first", 0.4), ("second", 1.5)], [("first", 0, 4), ("second", 4, 15)], id="two"
        ),
        pytest.param(
            [("first", 0.0), ("second", 1.0)], [("second", 0, 10)], id="none of the first"
        ),
        pytest.param(
            [("first", 1e-6), ("second", 1e-6)],
            [("first", 0, 1), ("second", 1, 1)],
            id="at least one update",
        ),
    ],
)
def test_stages(passes: list[tuple[str, float]], expected: list[tuple[str, int, int]]) -> None:
    found = stages_of(passes, episodes=80, batch_size=8)
    assert found == [Stage(*one) for one in expected]


def test_an_algorithm_that_cannot_be_sharded_is_refused_before_its_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forethought.training.run.is_sharded", lambda accelerator: True)
    config = QSFTConfig(
        output=str(tmp_path / "run"), data=str(tmp_path), model="tiny", phases="joint"
    )
    with pytest.raises(ConfigError, match="accelerate launched FSDP"):
        train_q_sft(config)
    assert not (tmp_path / "run").exists()

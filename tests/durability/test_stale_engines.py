"""Engines whose weights are older than the run's: found out before anything is learned from them.

One lies: it takes each new version's name, and goes on with the first one's weights. Others say
the truth, which is an old version.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.dpo.train import train_dpo
from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.ppo.train import train_ppo
from forethought.configs.acting import GenerationConfig
from forethought.errors import ForethoughtError, OffPolicyError, PolicyError
from forethought.rollouts.store import read_shards
from forethought.serving.weights import ServedWeights
from tests.contract.test_engines import DPO, LORA, SETTINGS, ids_of, metric
from tests.engines import bandit, engine_of, save_model, teach

LIES = "an engine has other weights than it says"
LATE = r"weights \w+-v0 wrote the answer, expected \w+-v1"


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("stale") / "model", bandit())


def lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are not loaded after the first ones; names and answers say that they were."""
    loaded: list[str] = []
    load_adapter, select = ServedWeights.load_adapter, ServedWeights.select
    reload = ServedWeights.reload

    def load_once(self: ServedWeights, name: str, path: Path) -> None:
        if not loaded:
            load_adapter(self, name, path)
        loaded.append(name)

    def reload_once(self: ServedWeights, path: Path, version: str | None) -> None:
        if not loaded:
            reload(self, path, version)
        loaded.append(str(version))

    def select_first(self: ServedWeights, adapter: str | None) -> None:
        select(self, loaded[0] if adapter else None)

    monkeypatch.setattr(ServedWeights, "load_adapter", load_once)
    monkeypatch.setattr(ServedWeights, "unload_adapter", lambda *_: None)
    monkeypatch.setattr(ServedWeights, "select", select_first)
    monkeypatch.setattr(ServedWeights, "reload", reload_once)
    monkeypatch.setattr(ServedWeights, "adapters", property(lambda _: tuple(loaded)))
    monkeypatch.setattr(
        ServedWeights, "version", property(lambda _: loaded[-1] if loaded else None)
    )


def be_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are not loaded after the first ones, and answers say so."""
    reload = ServedWeights.reload

    def reload_once(self: ServedWeights, path: Path, version: str | None) -> None:
        if self.version is None:
            reload(self, path, version)

    monkeypatch.setattr(ServedWeights, "reload", reload_once)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "config", "kind", "line"),
    [
        (lie, PPOConfig(**SETTINGS), OffPolicyError, LIES),
        (lie, PPOConfig(**SETTINGS, lora=LORA), OffPolicyError, LIES),
        (be_late, PPOConfig(**SETTINGS), PolicyError, LATE),
        (lie, DPO, OffPolicyError, LIES),
    ],
    ids=["it lies", "it lies, with adapters", "it is late", "it lies, DPO"],
)
def test_stale(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Any,
    config: PPOConfig | DPOConfig,
    kind: type[ForethoughtError],
    line: str,
) -> None:
    """The run learns from the first iteration alone; by a sound engine it goes on, and equals the
    run of one process."""
    run, alone = tmp_path / "run", tmp_path / "alone"
    train: Any = train_ppo
    if isinstance(config, DPOConfig):
        train, model = train_dpo, teach(model, tmp_path / "taught")
    config = replace(config, model=str(model), output=str(run), checkpoint_every=1)
    with monkeypatch.context() as broken:
        fault(broken)
        with engine_of(model, tmp_path) as url:
            by_engine = replace(config, generation=GenerationConfig((url,), patience_s=60.0))
            with pytest.raises(kind, match=line) as error:
                train(by_engine)
    assert "then go on with --resume" in str(error.value)
    assert {s.policy_version for t in read_shards(run / "trajectories") for s in t.steps} == {0}
    assert len(metric(run, "engine_kl")) == 1
    with engine_of(model, tmp_path, port=int(url.rpartition(":")[2])):
        train(by_engine, existing="resume")
    train(replace(config, output=str(alone)))
    assert ids_of(run) == ids_of(alone)
    assert max(metric(run, "engine_kl")) < 1e-6

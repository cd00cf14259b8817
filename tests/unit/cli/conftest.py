"""The command line as a person meets it: words in; exit code, stdout and stderr out."""

import shutil
from pathlib import Path

import pytest

from forethought.cli.main import main
from tests.typed import words_of
from tests.unit.cli.terminal import PPO, SFT, VALUES, Outcome, Type


@pytest.fixture
def type_(capfd: pytest.CaptureFixture[str]) -> Type:
    """Types a command behind `forethought`."""

    def type_in(words: str) -> Outcome:
        capfd.readouterr()
        code = main(words_of(words))
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    return type_in


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths, such as the default run folders, lie in the test's own folder; the hub
    is never asked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="session")
def _sft_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "sft"
    assert main([*SFT.split(), "--output", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def _ppo_run(tmp_path_factory: pytest.TempPathFactory, _sft_run: Path) -> Path:
    path = tmp_path_factory.mktemp("cli") / "ppo"
    assert main([*PPO.split(), "--model", str(_sft_run), "--output", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def _chance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "chance"
    words = "collect --policy random --environment.id Bandit --episodes 32 --output"
    assert main([*words.split(), str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def _q_sft_run(tmp_path_factory: pytest.TempPathFactory, _sft_run: Path, _chance: Path) -> Path:
    return _valued("q-sft", tmp_path_factory.mktemp("cli") / "q_sft", _sft_run, _chance)


@pytest.fixture(scope="session")
def _ilql_run(tmp_path_factory: pytest.TempPathFactory, _sft_run: Path, _chance: Path) -> Path:
    return _valued("ilql", tmp_path_factory.mktemp("cli") / "ilql", _sft_run, _chance)


def _valued(algorithm: str, path: Path, model: Path, data: Path) -> Path:
    folders = ["--model", str(model), "--data", str(data), "--output", str(path)]
    assert main(["train", algorithm, *VALUES.split(), *folders]) == 0
    return path


@pytest.fixture
def sft_run(_sft_run: Path, tmp_path: Path) -> Path:
    """A finished run of `SFT`, to do with as one likes."""
    return shutil.copytree(_sft_run, tmp_path / "sft")


@pytest.fixture
def ppo_run(_ppo_run: Path, tmp_path: Path) -> Path:
    """A finished run of `PPO`, which started from `sft_run`."""
    return shutil.copytree(_ppo_run, tmp_path / "ppo")


@pytest.fixture(params=["q_sft", "ilql"])
def valued_run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A finished run of `VALUES`, which started from `sft_run`; one of either algorithm."""
    path: Path = request.getfixturevalue(f"_{request.param}_run")
    return shutil.copytree(path, tmp_path / request.param)

"""A run that was damaged, or that another version wrote, is refused by every command that
reads it: in one line, before anything is written."""

from collections.abc import Callable
from pathlib import Path

import pytest

from forethought.algorithms.sft.config import SFTConfig
from forethought.cli.main import main
from forethought.configs.file import dump_config
from forethought.configs.parts import EnvironmentConfig
from forethought.runs.checkpoints import write_checkpoint
from forethought.runs.run_folder import RunFolder
from tests.typed import words_of

READERS = [
    "train sft --resume {run}",
    "train ppo --model {run} --output {elsewhere}",
    "evaluate {run}",
    "evaluate {run}/checkpoints/step_4",
    "collect --policy {run} --output {elsewhere}",
]
each_reader = pytest.mark.parametrize("words", READERS)


def write(folder: Path) -> None:
    (folder / "model").mkdir()
    (folder / "model" / "model.safetensors").write_bytes(bytes(1000))
    (folder / "progress.json").write_text("{}")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Nothing of its model is real, for nothing comes to read it."""
    folder = RunFolder.create(tmp_path / "run")
    config = SFTConfig(output=str(folder.path), environment=EnvironmentConfig(id="Bandit"))
    folder.config_path.write_text(dump_config(config))
    for step in (2, 4):
        write_checkpoint(folder.checkpoints_dir, step, write)
    return folder.path


def content(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): path for path in paths}
    written_by_all = {".lock", "environment.txt"}
    return {name: path.read_bytes() for name, path in files.items() if name not in written_by_all}


def refusal(words: str, run: Path, capfd: pytest.CaptureFixture[str]) -> str:
    elsewhere = run.parent / "elsewhere"
    before = content(run)
    capfd.readouterr()
    assert main(words_of(words.format(run=run, elsewhere=elsewhere))) == 2
    out, err = capfd.readouterr()
    assert not out
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert content(run) == before
    assert not elsewhere.exists()
    return err.removeprefix("error: ").strip()


def cut(checkpoint: Path) -> str:
    file = checkpoint / "model" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    return "model/model.safetensors was altered or cut short"


def flip(checkpoint: Path) -> str:
    file = checkpoint / "model" / "model.safetensors"
    file.write_bytes(b"\1" + file.read_bytes()[1:])
    return "model/model.safetensors was altered or cut short"


def lose(checkpoint: Path) -> str:
    (checkpoint / "progress.json").unlink()
    return "progress.json is missing"


@each_reader
@pytest.mark.parametrize("damage", [cut, flip, lose])
def test_a_damaged_checkpoint(
    run: Path, capfd: pytest.CaptureFixture[str], words: str, damage: Callable[[Path], str]
) -> None:
    checkpoint = run / "checkpoints" / "step_4"
    told = damage(checkpoint)
    assert refusal(words, run, capfd) == (
        f"{checkpoint}: {told} — the newest good one is step_2: delete step_4 to go on from it"
    )


@pytest.mark.parametrize("words", [words for words in READERS if "--model" not in words])
def test_settings_of_another_version(
    run: Path, capfd: pytest.CaptureFixture[str], words: str
) -> None:
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("config_version: 2", "config_version: 3"))
    assert refusal(words, run, capfd).startswith(
        f"{config}: config_version is 3 — this Forethought reads 2; "
    )


def test_a_log_that_was_cut_since(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def with_progress(folder: Path) -> None:
        write(folder)
        (folder / "progress.json").write_text(
            '{"step": 6, "updates": 6, "cursors": [], '
            '"metrics": {"metrics_bytes": 500, "timings_bytes": 0, "step": 6}}'
        )

    write_checkpoint(run / "checkpoints", 6, with_progress)
    (run / "metrics.jsonl").write_text('{"step": 1}\n')
    assert refusal("train sft --resume {run}", run, capfd) == (
        f"{run / 'metrics.jsonl'}: got 12 bytes, expected a line to end at byte 500 — it was "
        "altered since the checkpoint; put it back, or start another run"
    )

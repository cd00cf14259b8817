"""`forethought train`: from flags and files to a run, and every refusal in one line."""

import errno
import json
import os
import re
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
import yaml

from forethought.configs.file import load_any_config
from forethought.runs.checkpoints import model_source
from forethought.runs.run_folder import RunFolder
from tests.unit.cli.terminal import PPO, SFT, VALUES, Type


def stored(run: Path) -> dict[str, bytes]:
    """What a run holds, but for what a clock measured and what only says who wrote it."""
    kept = ("config.yaml", "metrics.jsonl", "checkpoints")
    files = [path for path in sorted(run.rglob("*")) if path.is_file()]
    names = [(path.relative_to(run), path) for path in files]
    return {str(name): path.read_bytes() for name, path in names if name.parts[0] in kept}


def refusal(type_: Type, words: str) -> str:
    """The one line that a command is refused with."""
    outcome = type_(words)
    assert outcome.code == 2
    assert not outcome.out
    (line,) = outcome.lines
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


@contextmanager
def file_size_limit(limit: int) -> Generator[None]:
    """A disk that is full for every file above this size, in bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def read_only(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Refuses what opens a file in this folder for writing. (Permissions stop no root.)"""
    path_open = Path.open

    def refuse(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
        if folder in path.parents and mode[0] in "wax":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return path_open(path, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)


# What a run leaves, and says


def test_a_run_says_where_it_is_and_what_to_type_next(type_: Type, tmp_path: Path) -> None:
    outcome = type_(f"{SFT} --output runs/a --seed 3")
    assert outcome.code == 0
    assert outcome.out == "runs/a\nnext: forethought evaluate runs/a\n"
    assert outcome.lines == []
    assert load_any_config(tmp_path / "runs/a/config.yaml").seed == 3


def test_flags_override_the_file_and_the_file_the_defaults(type_: Type, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(
        "algorithm: sft\nseed: 5\nbatch_size: 8\nenvironment:\n  id: Bandit\n"
        "optimizer:\n  learning_rate: 0.002\n"
    )
    outcome = type_("train sft --config my.yaml --seed 6 --optimizer.warmup-steps 1 --dry-run")
    assert outcome.code == 0
    settings = yaml.safe_load(outcome.out)
    assert (settings["seed"], settings["batch_size"]) == (6, 8)
    assert settings["optimizer"]["learning_rate"] == 0.002
    assert settings["optimizer"]["warmup_steps"] == 1


def test_a_file_may_hold_values_that_only_fit_together(type_: Type, tmp_path: Path) -> None:
    """64 slots, the default, do not divide 10 steps; flags are checked with the file's."""
    (tmp_path / "my.yaml").write_text(
        "model: tiny\ntotal_steps: 20\nbatch_size: 10\nenvironment: {id: Bandit}\n"
        "rollout: {num_envs: 5, steps_per_iteration: 10}\n"
    )
    outcome = type_("train ppo --config my.yaml --rollout.num-envs 2 --dry-run")
    assert outcome.code == 0
    assert "20 of the environment: 2 iterations of 10, in 2 at once" in outcome.out


# Dry runs


def test_a_dry_run_of_sft_prints_settings_and_plan_and_writes_nothing(
    type_: Type, tmp_path: Path
) -> None:
    outcome = type_(f"{SFT} --output runs/a --dry-run")
    assert outcome.code == 0
    assert list(tmp_path.iterdir()) == []
    assert yaml.safe_load(outcome.out)["output"] == "runs/a"
    plan = [line for line in outcome.out.splitlines() if line.startswith("#")]
    assert plan[1] == "# updates     4 of 16 responses each, from 64 steps"
    assert plan[2].startswith("# tokens      at most ")
    assert plan[3].startswith("# model       1,")
    assert "an estimate: weights 4." in plan[4]


def test_a_dry_run_counts_the_images_that_stay_in_memory(type_: Type) -> None:
    """50,000 of 300 × 300 pixels, the paper's demonstrations, are 12.6 GiB at three bytes each,
    and wait packed; the 1,024 of an iteration are as they were drawn."""
    words = "--environment.id NumberLine --environment.image-size 300"
    sft = type_(f"train sft {words} --expert-steps 50000 --dry-run")
    packed = re.findall(r", images (0\.\d\d) GiB\n", sft.out)
    assert [0.05 < float(size) < 0.5 for size in packed] == [True]
    online = f"train ppo --model tiny {words} --rollout.steps-per-iteration 1024 --dry-run"
    assert ", images 0.26 GiB\n" in type_(online).out


def test_a_model_made_from_nothing_is_as_large_as_its_name_says(
    type_: Type, tmp_path: Path
) -> None:
    sft = f"{SFT} --model tiny-small --epochs 0.5 --output runs/small"
    assert "# model       2" in type_(f"{sft} --dry-run").out  # Hundred thousand.
    assert type_(sft).code == 0
    (weights,) = tmp_path.glob("runs/small/checkpoints/*/model/config.json")
    assert json.loads(weights.read_text())["text_config"]["hidden_size"] == 64
    assert "# model       5,4" in type_(f"{SFT} --model tiny-large --dry-run").out


def test_the_printed_settings_are_a_config_file(type_: Type, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(type_(f"{SFT} --seed 9 --dry-run").out)
    again = type_("train sft --config my.yaml --dry-run")
    assert again.out == (tmp_path / "my.yaml").read_text()


def test_a_dry_run_of_ppo_looks_at_the_model_without_its_weights(
    type_: Type, ppo_run: Path, sft_run: Path
) -> None:
    outcome = type_(f"{PPO} --model {sft_run} --lora.components language_model --dry-run")
    assert outcome.code == 0
    assert "# steps       48 of the environment: 3 iterations of 16, in 8 at once" in outcome.out
    assert "# updates     3: 1 per iteration, of 16 steps each" in outcome.out
    assert "at most 576 generated" in outcome.out  # 48 steps of 12 tokens
    # Rank 128 on the seven projections of each of 4 layers: 128 wide, 352 in the perceptron.
    trained = 4 * 128 * (4 * (128 + 128) + 3 * (128 + 352))
    assert f"of which {trained:,} are trained" in outcome.out
    assert "cache of generation" in outcome.out


# Resuming


def test_a_finished_run_is_resumed_to_nothing(type_: Type, ppo_run: Path) -> None:
    before = stored(ppo_run)
    outcome = type_(f"train ppo --resume {ppo_run}")
    assert outcome.code == 0
    assert outcome.out.startswith(f"{ppo_run}\n")
    assert outcome.lines == [f"{ppo_run}: had finished already, at step_3"]
    after = stored(ppo_run)
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == ["config.yaml"]  # it moved


def test_equal_flags_are_no_other_settings(type_: Type, sft_run: Path) -> None:
    assert type_(f"{SFT} --resume {sft_run}").code == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            "--optimizer.learning-rate 0.01",
            "optimizer.learning_rate is 0.01, but 0.001 in {run} — a run is resumed with its own "
            "settings: leave that out, or start another run with another --output",
        ),
        ("--seed 4 --epochs 3", "seed is 4, but 0 in {run} — a run is resumed with its own "),
        ("--output runs/b", "output is 'runs/b', but '{run}' in {run} — a run is resumed with "),
        ("--overwrite", "--resume and --overwrite exclude each other — a run is resumed with "),
        ("--config a.yaml", "--resume and --config exclude each other — a run is resumed with "),
    ],
)
def test_a_run_is_resumed_with_its_own_settings(
    type_: Type, sft_run: Path, words: str, line: str
) -> None:
    before = stored(sft_run)
    got = refusal(type_, f"train sft --resume {sft_run} {words}")
    assert got.startswith(line.format(run=sft_run))
    assert stored(sft_run) == before


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--resume runs/none", "runs/none: does not exist — expected a run folder"),
        ("--resume .", ".: is not a run folder: config.yaml is missing"),
    ],
)
def test_what_is_no_run_cannot_be_resumed(
    type_: Type, tmp_path: Path, words: str, line: str
) -> None:
    assert refusal(type_, f"train sft {words}") == line
    assert list(tmp_path.iterdir()) == []


# Refusals


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            "--environment.id NumberLin",
            "unknown environment 'NumberLin' — did you mean NumberLine? known: NumberLine, ",
        ),
        ("--environment.id no_such:Name", "environment 'no_such:Name': module no_such does not"),
        ("--environment.options moon=full", "NumberLine has no option moon='full' — it has: rul"),
        ("--environment.options moon", "environment.options is 'moon' — expected name=value"),
        ("--model no-such/model", "model 'no-such/model' does not exist here"),
        ("--optimizer.learning-rat 3", "unknown flag --optimizer.learning-rat — did you mean --op"),
        (
            "--optimizer.learning-rate 3",
            "optimizer.learning_rate is 3.0 — expected above 0, at most 0.1; did you mean 3.0e-5?",
        ),
        ("--seed -1", "seed is -1 — expected 0 to 2147483647"),
        ("--data no/such", "no/such: does not exist — expected a file or folder of trajectories"),
        ("--config no.yaml", "no.yaml: cannot be read: No such file or directory"),
    ],
)
def test_bad_flags(type_: Type, words: str, line: str) -> None:
    got = refusal(type_, f"train sft --expert-steps 8 --compute.threads 1 {words}")
    assert got.startswith(line)


@pytest.mark.parametrize("rate", ["nan", "inf", "1e+22"])
def test_a_rate_that_no_digits_spell_is_not_mended(type_: Type, rate: str) -> None:
    line = refusal(type_, f"train sft --optimizer.learning-rate {rate}")
    assert line == f"optimizer.learning_rate is {rate} — expected above 0, at most 0.1"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("sead: 3", "my.yaml: unknown field sead — did you mean seed?"),
        ("optimizer: {learning_rat: 3}", "my.yaml: unknown field optimizer.learning_rat — did yo"),
        ("seed: -1", "my.yaml: seed is -1 — expected 0 to 2147483647"),
        ("seed: two", "my.yaml: seed is 'two' — expected a whole number"),
        ("config_version: 7", "my.yaml: config_version is 7 — this Forethought reads 2; rewrite "),
        ("algorithm: ppo", "my.yaml: is for algorithm 'ppo', not for this command"),
        ("seed: [", "my.yaml: is not YAML: while parsing a flow node"),
    ],
)
def test_bad_files(type_: Type, tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "my.yaml").write_text(text)
    assert refusal(type_, "train sft --config my.yaml").startswith(line)


def test_a_run_with_values_is_a_start_too(type_: Type, valued_run: Path, tmp_path: Path) -> None:
    """Of its behavior policy, which is left as it was where nothing imitates any more."""
    assert (
        type_("collect --policy random --environment.id Bandit --episodes 8 --output data").code
        == 0
    )
    words = f"train ilql {VALUES} --bc-epochs 0 --model {valued_run} --data data"
    outcome = type_(f"{words} --output {tmp_path / 'next'}")
    assert outcome.code == 0, outcome.err
    weights = "behavior/model.safetensors"
    one, other = (Path(model_source(str(run))) / weights for run in (valued_run, tmp_path / "next"))
    assert one.read_bytes() == other.read_bytes()


def test_a_run_that_is_there_is_neither_continued_nor_deleted(type_: Type, sft_run: Path) -> None:
    before = stored(sft_run)
    assert refusal(type_, f"{SFT} --output {sft_run}") == (
        f"{sft_run}: holds a run already — continue it with --resume, "
        "replace it with --overwrite, or name another folder"
    )
    assert stored(sft_run) == before


def test_overwrite_starts_anew(type_: Type, sft_run: Path) -> None:
    outcome = type_(f"{SFT} --output {sft_run} --overwrite --seed 1")
    assert (outcome.code, outcome.lines) == (0, [])  # Not that it had finished.
    assert load_any_config(sft_run / "config.yaml").seed == 1


@pytest.mark.parametrize("inside", ["", "checkpoints/step_4"])
def test_overwrite_never_deletes_the_model_to_start_from(
    type_: Type, sft_run: Path, inside: str
) -> None:
    before, model = stored(sft_run), sft_run / inside
    line = refusal(type_, f"{SFT} --output {sft_run} --overwrite --model {model}")
    assert line == (
        f"--overwrite would delete what the run learns from, model {model} — name another --output"
    )
    assert stored(sft_run) == before


def test_overwrite_never_deletes_its_own_data(type_: Type, tmp_path: Path) -> None:
    run, data = tmp_path / "run", tmp_path / "run" / "trajectories"
    collect = "collect --environment.id Bandit --episodes 4 --output"
    assert type_(f"{collect} {data}").code == 0
    (shard,) = data.glob("*.parquet")
    line = refusal(type_, f"{SFT} --output {run} --overwrite --data {data}")
    assert line.startswith(f"--overwrite would delete what the run learns from, data {data} — ")
    assert shard.exists()


def test_a_locked_run_folder(type_: Type, sft_run: Path) -> None:
    before = stored(sft_run)
    with RunFolder(sft_run).lock():
        for words in (f"train sft --resume {sft_run}", f"{SFT} --output {sft_run} --overwrite"):
            line = refusal(type_, words)
            assert line.startswith(f"{sft_run}: is being written by process {os.getpid()}, ")
    assert stored(sft_run) == before


def test_a_read_only_run_folder(
    type_: Type, sft_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored(sft_run)
    read_only(monkeypatch, sft_run)
    line = refusal(type_, f"train sft --resume {sft_run}")
    assert "Read-only file system" in line
    assert str(sft_run) in line
    assert stored(sft_run) == before


def test_a_folder_that_cannot_be_made(type_: Type) -> None:
    line = refusal(type_, f"{SFT} --output /proc/forethought")
    assert line.startswith("/proc/forethought: cannot be used as a run folder: ")


@pytest.mark.parametrize("limit", [200, 100_000], ids=["metrics", "weights"])
def test_a_full_disk_costs_what_came_after_the_last_checkpoint(
    type_: Type, sft_run: Path, tmp_path: Path, limit: int
) -> None:
    whole = stored(sft_run)
    run = tmp_path / "other"
    with file_size_limit(3_000_000 if limit < 1000 else limit):
        assert "could not be written" in refusal(type_, f"{SFT} --output {run}")
    resumed = type_(f"train sft --resume {run}")
    assert (resumed.code, resumed.lines) == (0, [])  # Not that it had finished.
    assert stored(run).keys() == whole.keys()

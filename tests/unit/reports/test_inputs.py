"""What is read from a run folder: all that is there, and nothing that is not."""

from dataclasses import replace
from pathlib import Path

import pytest

from forethought.configs.parts import EnvironmentConfig
from forethought.errors import ForethoughtError, RunFolderError, StorageError
from forethought.reports.inputs import read_run
from tests.unit.reports.builders import PPO, SFT, evaluation, lost, make_run, unfinished, won


def test_a_run_that_only_began(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "run"))
    assert run.algorithm == "ppo"
    assert run.config == PPO
    assert run.last_step is None
    nothing = (run.metrics, run.timings, run.evaluation, run.start, run.episodes, run.environment)
    assert nothing == (None,) * 6
    assert "total_steps: 32" in run.config_text


def test_an_empty_log_is_none(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", SFT)
    (path / "metrics.jsonl").touch()
    assert read_run(path).metrics is None


def test_a_log_that_is_being_written(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", SFT, metrics=3 * ['{"loss": 1}'])
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')
    assert read_run(path).last_step == 3


def test_held_out_episodes_come_before_those_of_training(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "run", held_out=[won()], training=[lost(), lost()]))
    assert run.episodes is not None
    assert run.episodes.played_for == "evaluation"
    assert len(run.episodes.trajectories) == 1


def test_else_the_last_that_were_played_are_shown(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", training=[unfinished()])
    newest = make_run(tmp_path / "other", training=[won(), lost()])
    shard = next((newest / "trajectories").iterdir())
    shard.rename(path / "trajectories" / "step_000005_process_0.parquet")
    run = read_run(path)
    assert run.episodes is not None
    assert run.episodes.played_for == "training"
    assert run.episodes.file_name == "step_000005_process_0.parquet"
    assert len(run.episodes.trajectories) == 2


# Where a run began


@pytest.mark.parametrize("named", ["runs/sft", "runs/sft/checkpoints/step_4"])
def test_the_start_is_found_from_where_the_run_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """Whether or not that is where the report is asked for."""
    make_run(tmp_path / "runs" / "sft", SFT, judged=evaluation(0.55))
    path = make_run(tmp_path / "runs" / "ppo", replace(PPO, model=named))
    for folder in (tmp_path, tmp_path / "runs"):
        monkeypatch.chdir(folder)
        start = read_run(path).start
        assert start is not None
        assert start.algorithm == "sft"
        assert start.evaluation.policy.success_rate == 0.55


def test_a_start_may_have_an_absolute_name(tmp_path: Path) -> None:
    model = make_run(tmp_path / "a" / "sft", SFT, judged=evaluation(0.55))
    run = read_run(make_run(tmp_path / "b" / "ppo", replace(PPO, model=str(model))))
    assert run.start is not None


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(EnvironmentConfig(id="Blackjack"), id="another environment"),
        pytest.param(EnvironmentConfig(options=("rules=reference",)), id="other rules"),
    ],
)
def test_results_in_another_environment_are_not_compared(
    tmp_path: Path, environment: EnvironmentConfig
) -> None:
    start = replace(SFT, environment=environment)
    model = make_run(tmp_path / "sft", start, judged=evaluation(0.55))
    assert read_run(make_run(tmp_path / "ppo", replace(PPO, model=str(model)))).start is None


def test_how_an_environment_is_drawn_makes_it_no_other(tmp_path: Path) -> None:
    start = replace(SFT, environment=EnvironmentConfig(image_size=300, workers=2))
    model = make_run(tmp_path / "sft", start, judged=evaluation(0.55))
    assert read_run(make_run(tmp_path / "ppo", replace(PPO, model=str(model)))).start is not None


def test_a_start_that_was_not_judged_is_none(tmp_path: Path) -> None:
    model = make_run(tmp_path / "sft", SFT)
    assert read_run(make_run(tmp_path / "ppo", replace(PPO, model=str(model)))).start is None


def test_a_start_that_is_no_run_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub id, a folder of weights; and `tiny`, which is never a folder."""
    make_run(tmp_path / "tiny", SFT, judged=evaluation(0.55))
    monkeypatch.chdir(tmp_path)
    for number, model in enumerate(("org/model", str(tmp_path), "tiny")):
        run = make_run(tmp_path / f"run{number}", replace(PPO, model=model))
        assert read_run(run).start is None


# What is refused


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="is not a run folder"):
        read_run(tmp_path)
    with pytest.raises(RunFolderError, match="missing: does not exist"):
        read_run(tmp_path / "missing")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.yaml", b"algorithm: sft\nepochs: many\n"),
        ("evaluation.json", b'{"schema_version": 1}'),
        ("evaluation.json", b"\xff\xfe"),
        ("evaluation_episodes.parquet", b"PAR1"),
        ("metrics.jsonl", b"not json\n"),
        ("environment.txt", b"\xff\xfe"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    path = make_run(tmp_path / "run", SFT)
    (path / name).write_bytes(content)
    with pytest.raises(ForethoughtError) as error:
        read_run(path)
    assert str(path / name) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_damaged_evaluation_of_the_start_is_named(tmp_path: Path) -> None:
    model = make_run(tmp_path / "sft", SFT)
    (model / "evaluation.json").write_text("{")
    path = make_run(tmp_path / "ppo", replace(PPO, model=str(model)))
    with pytest.raises(StorageError, match=r"sft/evaluation\.json"):
        read_run(path)

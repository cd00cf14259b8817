"""Cells are run once, resumed where they stopped, and fail alone."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from forethought.algorithms.ppo.config import PPOConfig
from forethought.configs.contract import AnyConfig
from forethought.errors import DivergenceError
from forethought.evaluation.evaluate import EvaluationSettings
from forethought.evaluation.results import Evaluation
from forethought.runs.run_folder import RunFolder
from forethought.studies.plan import Cell, Plan
from forethought.studies.running import (
    Outcome,
    Record,
    State,
    read_outcome,
    read_record,
    record_path,
    run_cells,
    training_seconds,
    write_record,
)
from tests.unit.studies.builders import STUDY, Workshop, make_plan

ONE_SEED = STUDY.replace("seeds: [0, 1]", "seeds: [0]")


@pytest.fixture
def plan() -> Plan:
    """Of one seed: SFT, then PPO twice."""
    return make_plan(ONE_SEED)


def states(plan: Plan) -> list[State]:
    return [read_outcome(cell, plan).state for cell in plan.cells()]


def is_half(config: AnyConfig) -> bool:
    return isinstance(config, PPOConfig) and config.thought_weight == 0.5


def test_a_shared_stage_is_trained_and_judged_once(plan: Plan) -> None:
    workshop = Workshop()
    outcomes = run_cells(plan, workshop.work)
    assert workshop.trained == workshop.judged == ["sft 0", "ppo 0", "ppo 0"]
    assert [outcome.state for outcome in outcomes] == [State.FINISHED] * 3


def test_what_is_finished_is_never_done_again(plan: Plan) -> None:
    run_cells(plan, Workshop().work)
    again = Workshop()
    run_cells(plan, again.work)
    assert again.trained == again.judged == []
    assert all(line.endswith("finished before") for line in again.said)


def test_a_variant_of_the_world_is_judged_once_and_trains_nothing(plan: Plan) -> None:
    run_cells(plan, Workshop().work)
    workshop = Workshop()
    dark = make_plan(ONE_SEED + "also_judged: [{name: dark, options: [light=off]}]\n")
    assert states(dark) == [State.TRAINED] * 3
    outcomes = run_cells(dark, workshop.work)
    assert workshop.trained == []
    assert workshop.judged == ["sft 0 light=off", "ppo 0 light=off", "ppo 0 light=off"]
    assert [outcome.state for outcome in outcomes] == [State.FINISHED] * 3
    run_cells(dark, workshop.work)
    assert len(workshop.judged) == 3


def test_sampled_answers_are_judged_beside_the_greedy_ones(plan: Plan) -> None:
    workshop = Workshop()
    told = "also_judged: [{name: sampled, temperature: 1}]\n"
    outcomes = run_cells(make_plan(ONE_SEED + told), workshop.work)
    assert workshop.judged[:2] == ["sft 0", "sft 0 at 1"]
    temperatures = [[e and e.temperature for e in (o.evaluation, *o.also)] for o in outcomes]
    assert temperatures == [[0.0, 1.0]] * 3
    assert states(make_plan(ONE_SEED + told.replace("1", "0.5"))) == [State.TRAINED] * 3


def test_answers_held_to_open_actions_are_judged_beside_the_free_ones(plan: Plan) -> None:
    workshop = Workshop()
    told = "also_judged: [{name: held, constrain_actions: true}]\n"
    outcomes = run_cells(make_plan(ONE_SEED + told), workshop.work)
    assert workshop.judged[:2] == ["sft 0", "sft 0 held"]
    held = [[e and e.holds_actions for e in (o.evaluation, *o.also)] for o in outcomes]
    assert held == [[False, True]] * 3
    free = told.replace("true", "false, temperature: 1")
    assert states(make_plan(ONE_SEED + free)) == [State.TRAINED] * 3
    for outcome in outcomes:
        assert outcome.also[0] is not None
        own = outcome.cell.folder.evaluation_path
        own.write_text(outcome.also[0].to_json(), encoding="utf-8")
    assert states(plan) == [State.TRAINED] * 3


def test_other_options_under_the_same_name_are_judged_anew(plan: Plan) -> None:
    told = "also_judged: [{name: dark, options: [light=off]}]\n"
    run_cells(make_plan(ONE_SEED + told), Workshop().work)
    changed = make_plan(ONE_SEED + told.replace("off", "dim"))
    assert states(changed) == [State.TRAINED] * 3


def test_other_episodes_are_judged_and_not_trained_again(plan: Plan) -> None:
    run_cells(plan, Workshop().work)
    longer = replace(plan, episodes=8)
    assert states(longer) == [State.TRAINED] * 3
    again = Workshop()
    run_cells(longer, again.work)
    assert (again.trained, len(again.judged)) == ([], 3)
    assert states(longer) == [State.FINISHED] * 3


def test_a_changed_row_is_trained_beside_the_others(plan: Plan) -> None:
    run_cells(plan, Workshop().work)
    changed = make_plan(ONE_SEED.replace("thought_weight: 0.0", "thought_weight: 0.1"))
    assert states(changed) == [State.FINISHED, State.FINISHED, State.MISSING]
    again = Workshop()
    run_cells(changed, again.work)
    assert again.trained == ["ppo 0"]


def test_one_row_may_be_run_alone(plan: Plan) -> None:
    workshop = Workshop()
    assert len(run_cells(plan, workshop.work, only=["none"])) == 2
    assert states(plan) == [State.FINISHED, State.MISSING, State.FINISHED]


def test_an_interrupted_cell_goes_on(plan: Plan) -> None:
    def interrupted(config: AnyConfig) -> None:
        if is_half(config):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cells(plan, Workshop(trouble=interrupted).work)
    assert states(plan) == [State.FINISHED, State.INTERRUPTED, State.MISSING]
    workshop = Workshop()
    run_cells(plan, workshop.work)
    assert workshop.trained == ["ppo 0 resume", "ppo 0"]
    assert states(plan) == [State.FINISHED] * 3


def test_an_interruption_in_disguise_is_one(plan: Plan) -> None:
    """Libraries may turn a Ctrl-C into an error of their own."""

    def interrupted(config: AnyConfig) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise RuntimeError("worker lost") from error

    with pytest.raises(RuntimeError, match="worker lost"):
        run_cells(plan, Workshop(trouble=interrupted).work)
    assert states(plan)[0] is State.INTERRUPTED


def test_a_failing_cell_leaves_the_others(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    def diverges(config: AnyConfig) -> None:
        if is_half(config):
            raise DivergenceError("the loss is\nnot a number")

    workshop = Workshop(trouble=diverges)
    outcomes = run_cells(plan, workshop.work)
    assert [o.state for o in outcomes] == [State.FINISHED, State.FAILED, State.FINISHED]
    assert outcomes[1].error == "the loss is not a number"
    assert workshop.said[-3].endswith("(half): failed: the loss is not a number")
    assert not capsys.readouterr().err
    again = Workshop()
    run_cells(plan, again.work)
    assert again.trained == ["ppo 0 resume"]
    assert states(plan) == [State.FINISHED] * 3


def test_a_bug_in_a_cell_is_shown_and_leaves_the_others(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    def bug(config: AnyConfig) -> None:
        if is_half(config):
            raise ZeroDivisionError("a bug")

    outcomes = run_cells(plan, Workshop(trouble=bug).work)
    assert [o.state for o in outcomes] == [State.FINISHED, State.FAILED, State.FINISHED]
    assert outcomes[1].error == "ZeroDivisionError: a bug"
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_without_its_first_stage_a_row_is_left_out() -> None:
    def no_sft_with_seed_0(config: AnyConfig) -> None:
        if not isinstance(config, PPOConfig) and config.seed == 0:
            raise DivergenceError("no")

    plan = make_plan()
    workshop = Workshop(trouble=no_sft_with_seed_0)
    outcomes = run_cells(plan, workshop.work)
    assert workshop.trained == ["sft 0", "sft 1", "ppo 1", "ppo 1"]
    assert [o.state for o in outcomes] == [
        *(State.FAILED, State.MISSING, State.MISSING),
        *[State.FINISHED] * 3,
    ]


def test_a_cell_that_cannot_be_judged_still_serves_the_next(plan: Plan) -> None:
    class Unjudging(Workshop):
        def judge(self, config: AnyConfig, settings: EvaluationSettings) -> Evaluation:
            if not isinstance(config, PPOConfig):
                raise DivergenceError("cannot be judged")
            return super().judge(config, settings)

    outcomes = run_cells(plan, Unjudging().work)
    assert [o.state for o in outcomes] == [State.FAILED, State.FINISHED, State.FINISHED]
    assert outcomes[0].is_trained


def test_a_damaged_record_is_told_and_leaves_the_others(plan: Plan) -> None:
    run_cells(plan, Workshop().work)
    path = record_path(plan.cells()[1])
    path.write_text("{", encoding="utf-8")
    outcomes = run_cells(plan, Workshop().work)
    assert [o.state for o in outcomes] == [State.FINISHED, State.FAILED, State.FINISHED]
    assert outcomes[1].error == f"{path}: is damaged — delete it, and {path.with_suffix('')}"


def test_a_run_that_was_deleted_is_trained_anew(plan: Plan) -> None:
    import shutil

    run_cells(plan, Workshop().work)
    shutil.rmtree(plan.cells()[1].folder.path)
    again = Workshop()
    run_cells(plan, again.work)
    assert again.trained == ["ppo 0"]


# How long it took


def started(cell: Cell) -> RunFolder:
    return RunFolder.create(cell.folder.path)


def test_time_that_was_logged_counts_as_logged(plan: Plan) -> None:
    """The log of a resumed run holds every round once."""
    folder = started(plan.cells()[1])
    rows = [{"step": 1, "collect_s": 1.5, "update_s": 2.0}, {"step": 2, "update_s": 4.0}]
    folder.timings_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert training_seconds(folder, Record("key", "0", seconds=99.0)) == 7.5


def test_where_only_speeds_are_logged_sessions_are_added_up(plan: Plan) -> None:
    """One of 30 s that ended, one that was killed 12 s after it had begun."""
    folder = started(plan.cells()[0])
    folder.timings_path.write_text('{"step": 1, "tokens_per_s": 800.0}\n')
    os.utime(folder.timings_path, (1012.0, 1012.0))
    record = Record("key", "0", seconds=30.0, began=1000.0)
    assert training_seconds(folder, record) == 42.0
    assert record.begun(folder).seconds == 42.0


def test_a_session_that_logged_nothing_counts_nothing(plan: Plan) -> None:
    folder = started(plan.cells()[0])
    assert training_seconds(folder, Record("key", "0", seconds=30.0, began=1000.0)) == 30.0


def test_a_record_is_read_back_equal(plan: Plan) -> None:
    cell = plan.cells()[0]
    assert read_record(cell, "0") == Record(cell.key, "0")
    record = Record(cell.key, "0", is_trained=True, seconds=1.25, began=3.5, error="λ | *")
    write_record(cell, record)
    assert read_record(cell, "0") == record


def test_an_evaluation_of_an_older_checkpoint_is_not_the_cells(plan: Plan) -> None:
    run_cells(plan, Workshop().work)
    cell = plan.cells()[0]
    (cell.folder.checkpoints_dir / "step_2").mkdir()
    outcome: Outcome = read_outcome(cell, plan)
    assert (outcome.state, outcome.evaluation) == (State.TRAINED, None)
    assert Path(cell.config.output).is_dir()

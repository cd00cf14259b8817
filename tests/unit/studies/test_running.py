"""Runs are trained once, resumed where they stopped, and fail alone."""

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
from forethought.studies.plan import Plan, StudyRun
from forethought.studies.running import (
    Outcome,
    Record,
    State,
    complete_runs,
    read_outcome,
    read_record,
    record_path,
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
    return [read_outcome(run, plan).state for run in plan.runs()]


def is_half(config: AnyConfig) -> bool:
    return isinstance(config, PPOConfig) and config.thought_weight == 0.5


def test_a_shared_stage_is_trained_and_evaluated_once(plan: Plan) -> None:
    workshop = Workshop()
    outcomes = complete_runs(plan, workshop.work)
    assert workshop.trained == workshop.evaluated == ["sft 0", "ppo 0", "ppo 0"]
    assert [outcome.state for outcome in outcomes] == [State.FINISHED] * 3


def test_what_is_finished_is_never_done_again(plan: Plan) -> None:
    complete_runs(plan, Workshop().work)
    again = Workshop()
    complete_runs(plan, again.work)
    assert again.trained == again.evaluated == []
    assert all(line.endswith("finished before") for line in again.said)


def test_an_extra_evaluation_is_made_once_and_trains_nothing(plan: Plan) -> None:
    complete_runs(plan, Workshop().work)
    workshop = Workshop()
    dark = make_plan(ONE_SEED + "extra_evaluations: [{name: dark, options: [light=off]}]\n")
    assert states(dark) == [State.TRAINED] * 3
    outcomes = complete_runs(dark, workshop.work)
    assert workshop.trained == []
    assert workshop.evaluated == ["sft 0 light=off", "ppo 0 light=off", "ppo 0 light=off"]
    assert [outcome.state for outcome in outcomes] == [State.FINISHED] * 3
    complete_runs(dark, workshop.work)
    assert len(workshop.evaluated) == 3


def test_sampled_completions_are_evaluated_beside_greedy_ones(plan: Plan) -> None:
    workshop = Workshop()
    told = "extra_evaluations: [{name: sampled, temperature: 1}]\n"
    outcomes = complete_runs(make_plan(ONE_SEED + told), workshop.work)
    assert workshop.evaluated[:2] == ["sft 0", "sft 0 at 1"]
    temperatures = [[e and e.temperature for e in (o.evaluation, *o.extra)] for o in outcomes]
    assert temperatures == [[0.0, 1.0]] * 3
    assert states(make_plan(ONE_SEED + told.replace("1", "0.5"))) == [State.TRAINED] * 3


def test_constrained_decoding_is_evaluated_beside_free_decoding(plan: Plan) -> None:
    workshop = Workshop()
    told = "extra_evaluations: [{name: constrained, constrain_actions: true}]\n"
    outcomes = complete_runs(make_plan(ONE_SEED + told), workshop.work)
    assert workshop.evaluated[:2] == ["sft 0", "sft 0 constrained"]
    held = [[e and e.holds_actions for e in (o.evaluation, *o.extra)] for o in outcomes]
    assert held == [[False, True]] * 3
    free = told.replace("true", "false, temperature: 1")
    assert states(make_plan(ONE_SEED + free)) == [State.TRAINED] * 3
    for outcome in outcomes:
        assert outcome.extra[0] is not None
        own = outcome.run.folder.evaluation_path
        own.write_text(outcome.extra[0].to_json(), encoding="utf-8")
    assert states(plan) == [State.TRAINED] * 3


def test_other_options_under_the_same_name_are_evaluated_again(plan: Plan) -> None:
    told = "extra_evaluations: [{name: dark, options: [light=off]}]\n"
    complete_runs(make_plan(ONE_SEED + told), Workshop().work)
    changed = make_plan(ONE_SEED + told.replace("off", "dim"))
    assert states(changed) == [State.TRAINED] * 3


def test_other_episodes_are_evaluated_and_nothing_is_trained_again(plan: Plan) -> None:
    complete_runs(plan, Workshop().work)
    longer = replace(plan, episodes=8)
    assert states(longer) == [State.TRAINED] * 3
    again = Workshop()
    complete_runs(longer, again.work)
    assert (again.trained, len(again.evaluated)) == ([], 3)
    assert states(longer) == [State.FINISHED] * 3


def test_a_changed_variant_is_trained_beside_the_others(plan: Plan) -> None:
    complete_runs(plan, Workshop().work)
    changed = make_plan(ONE_SEED.replace("thought_weight: 0.0", "thought_weight: 0.1"))
    assert states(changed) == [State.FINISHED, State.FINISHED, State.MISSING]
    again = Workshop()
    complete_runs(changed, again.work)
    assert again.trained == ["ppo 0"]


def test_one_variant_may_be_run_alone(plan: Plan) -> None:
    workshop = Workshop()
    assert len(complete_runs(plan, workshop.work, only=["none"])) == 2
    assert states(plan) == [State.FINISHED, State.MISSING, State.FINISHED]


def test_an_interrupted_run_is_resumed(plan: Plan) -> None:
    def interrupted(config: AnyConfig) -> None:
        if is_half(config):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        complete_runs(plan, Workshop(trouble=interrupted).work)
    assert states(plan) == [State.FINISHED, State.INTERRUPTED, State.MISSING]
    workshop = Workshop()
    complete_runs(plan, workshop.work)
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
        complete_runs(plan, Workshop(trouble=interrupted).work)
    assert states(plan)[0] is State.INTERRUPTED


def test_a_failing_run_leaves_the_others(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    def diverges(config: AnyConfig) -> None:
        if is_half(config):
            raise DivergenceError("the loss is\nnot a number")

    workshop = Workshop(trouble=diverges)
    outcomes = complete_runs(plan, workshop.work)
    assert [o.state for o in outcomes] == [State.FINISHED, State.FAILED, State.FINISHED]
    assert outcomes[1].error == "the loss is not a number"
    assert workshop.said[-3].endswith("(half): failed: the loss is not a number")
    assert not capsys.readouterr().err
    again = Workshop()
    complete_runs(plan, again.work)
    assert again.trained == ["ppo 0 resume"]
    assert states(plan) == [State.FINISHED] * 3


def test_a_bug_in_a_run_is_shown_and_leaves_the_others(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    def bug(config: AnyConfig) -> None:
        if is_half(config):
            raise ZeroDivisionError("a bug")

    outcomes = complete_runs(plan, Workshop(trouble=bug).work)
    assert [o.state for o in outcomes] == [State.FINISHED, State.FAILED, State.FINISHED]
    assert outcomes[1].error == "ZeroDivisionError: a bug"
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_without_its_first_stage_a_variant_is_left_out() -> None:
    def no_sft_with_seed_0(config: AnyConfig) -> None:
        if not isinstance(config, PPOConfig) and config.seed == 0:
            raise DivergenceError("no")

    plan = make_plan()
    workshop = Workshop(trouble=no_sft_with_seed_0)
    outcomes = complete_runs(plan, workshop.work)
    assert workshop.trained == ["sft 0", "sft 1", "ppo 1", "ppo 1"]
    assert [o.state for o in outcomes] == [
        *(State.FAILED, State.MISSING, State.MISSING),
        *[State.FINISHED] * 3,
    ]


def test_a_run_that_cannot_be_evaluated_still_serves_the_next(plan: Plan) -> None:
    class WithoutEvaluation(Workshop):
        def evaluate(self, config: AnyConfig, settings: EvaluationSettings) -> Evaluation:
            if not isinstance(config, PPOConfig):
                raise DivergenceError("cannot be evaluated")
            return super().evaluate(config, settings)

    outcomes = complete_runs(plan, WithoutEvaluation().work)
    assert [o.state for o in outcomes] == [State.FAILED, State.FINISHED, State.FINISHED]
    assert outcomes[0].is_trained


def test_a_damaged_record_is_told_and_leaves_the_others(plan: Plan) -> None:
    complete_runs(plan, Workshop().work)
    path = record_path(plan.runs()[1])
    path.write_text("{", encoding="utf-8")
    outcomes = complete_runs(plan, Workshop().work)
    assert [o.state for o in outcomes] == [State.FINISHED, State.FAILED, State.FINISHED]
    assert outcomes[1].error == f"{path}: is damaged — delete it, and {path.with_suffix('')}"


def test_a_run_that_was_deleted_is_trained_again(plan: Plan) -> None:
    import shutil

    complete_runs(plan, Workshop().work)
    shutil.rmtree(plan.runs()[1].folder.path)
    again = Workshop()
    complete_runs(plan, again.work)
    assert again.trained == ["ppo 0"]


# How long it took


def started(run: StudyRun) -> RunFolder:
    return RunFolder.create(run.folder.path)


def test_time_that_was_logged_counts_as_logged(plan: Plan) -> None:
    """The log of a resumed run holds every round once."""
    folder = started(plan.runs()[1])
    lines = [{"step": 1, "collect_s": 1.5, "update_s": 2.0}, {"step": 2, "update_s": 4.0}]
    folder.timings_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert training_seconds(folder, Record("key", "0", seconds=99.0)) == 7.5


def test_where_only_speeds_are_logged_sessions_are_added_up(plan: Plan) -> None:
    """One of 30 s that ended, one that was killed 12 s after it had begun."""
    folder = started(plan.runs()[0])
    folder.timings_path.write_text('{"step": 1, "tokens_per_s": 800.0}\n')
    os.utime(folder.timings_path, (1012.0, 1012.0))
    record = Record("key", "0", seconds=30.0, began=1000.0)
    assert training_seconds(folder, record) == 42.0
    assert record.begun(folder).seconds == 42.0


def test_a_session_that_logged_nothing_counts_nothing(plan: Plan) -> None:
    folder = started(plan.runs()[0])
    assert training_seconds(folder, Record("key", "0", seconds=30.0, began=1000.0)) == 30.0


def test_a_record_is_read_back_equal(plan: Plan) -> None:
    run = plan.runs()[0]
    assert read_record(run, "0") == Record(run.key, "0")
    record = Record(run.key, "0", is_trained=True, seconds=1.25, began=3.5, error="λ | *")
    write_record(run, record)
    assert read_record(run, "0") == record


def test_an_evaluation_of_an_older_checkpoint_does_not_count(plan: Plan) -> None:
    complete_runs(plan, Workshop().work)
    run = plan.runs()[0]
    (run.folder.checkpoints_dir / "step_2").mkdir()
    outcome: Outcome = read_outcome(run, plan)
    assert (outcome.state, outcome.evaluation) == (State.TRAINED, None)
    assert Path(run.config.output).is_dir()

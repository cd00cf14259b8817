"""Which runs a study has, and what makes two of them the same."""

from pathlib import Path
from typing import Any

import pytest

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.sft.config import SFTConfig
from tests.unit.studies.builders import PPO, SFT, STUDY, make_plan


def keys(**changes: Any) -> list[str]:
    """Keys of the first variant's first seed: SFT, then PPO."""
    return [run.key for run in make_plan(**changes).variants[0].chains[0]]


def test_variants_that_begin_alike_share_their_beginning() -> None:
    plan = make_plan()
    runs = plan.runs()
    assert [(run.algorithm, run.config.seed) for run in runs] == [
        *(("sft", 0), ("ppo", 0), ("ppo", 0)),
        *(("sft", 1), ("ppo", 1), ("ppo", 1)),
    ]
    assert [plan.variants_of(run) for run in runs[:3]] == [["half", "none"], ["half"], ["none"]]
    assert len({run.key for run in runs}) == 6


def test_a_later_stage_starts_from_the_run_of_the_one_before() -> None:
    for variant in make_plan().variants:
        for first, second in variant.chains:
            assert isinstance(first.config, SFTConfig)
            assert first.config.model == "tiny"
            assert second.config.model == first.config.output
            assert second.start == first
            assert Path(second.config.output) == Path("runs") / second.name


def test_overrides_nested_or_dotted_change_what_they_name_and_no_more() -> None:
    half, none = (variant.chains[0][1].config for variant in make_plan().variants)
    assert isinstance(half, PPOConfig)
    assert isinstance(none, PPOConfig)
    assert (half.thought_weight, none.thought_weight) == (0.5, 0.0)
    assert none.optimizer.learning_rate == 1e-4
    assert none.total_steps == half.total_steps == 1024
    dotted = STUDY.replace("optimizer: {learning_rate: 1e-4}", "optimizer.learning_rate: 1e-4")
    assert make_plan(dotted).variants[1] == make_plan().variants[1]


def test_fields_that_depend_on_each_other_are_overridden_together() -> None:
    both = "overrides: {rollout: {num_envs: 48, steps_per_iteration: 96}, batch_size: 96}"
    plan = make_plan(STUDY.replace("overrides: {thought_weight: 0.0, ", both + " #"))
    config = plan.variants[1].chains[0][1].config
    assert isinstance(config, PPOConfig)
    assert (config.rollout.num_envs, config.rollout.steps_per_iteration) == (48, 96)


def test_a_variant_may_have_seeds_of_its_own() -> None:
    plan = make_plan(STUDY.replace("- name: none", "- name: none\n    seeds: [1, 7, 8]"))
    assert [variant.seeds for variant in plan.variants] == [(0, 1), (1, 7, 8)]
    assert sum(run.algorithm == "sft" for run in plan.runs()) == 4  # 0, 1 shared, 7, 8
    assert [
        variant.name for variant in plan.variants if plan.runs(["half"])[0] in variant.chains[0]
    ] == ["half"]


def test_the_same_settings_have_the_same_key_wherever_they_are_written() -> None:
    assert keys() == keys()
    assert keys() == keys(output=Path("other/place"))
    assert keys() == keys(sft=SFT + "output: runs/somewhere\n")
    assert keys() == keys(
        study=STUDY.replace("demo", "other").replace("episodes: 4", "episodes: 9")
    )
    assert keys() == keys(ppo=PPO.replace("runs/elsewhere", "runs/nowhere"))


def test_a_default_that_is_written_out_is_the_same() -> None:
    assert keys() == keys(ppo=PPO + "gamma: 0.9\n")


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        pytest.param({"ppo": PPO + "gamma: 0.8\n"}, [True, False], id="a field of the stage"),
        pytest.param({"sft": SFT + "epochs: 2.0\n"}, [False, False], id="the stage before"),
        pytest.param({"code": "1"}, [False, False], id="the code"),
        pytest.param(
            {"study": STUDY.replace("seeds: [0, 1]", "seeds: [2, 1]")},
            [False, False],
            id="the seed",
        ),
    ],
)
def test_what_changes_a_result_changes_the_key(changes: dict[str, str], same: list[bool]) -> None:
    assert [one == other for one, other in zip(keys(), keys(**changes), strict=True)] == same


def test_steps_are_known_unless_stored_episodes_decide() -> None:
    first, second = make_plan().variants[0].chains[0]
    assert (first.steps, second.steps) == (10, 1024)
    first, _ = make_plan(sft=SFT + "data: data\n").variants[0].chains[0]
    assert first.steps is None


def test_the_model_of_a_first_stage_counts() -> None:
    assert keys()[0] != keys(sft=SFT + "model: runs/other\n")[0]


def test_one_seed_of_all_variants_comes_before_the_next() -> None:
    assert [run.config.seed for run in make_plan().runs()] == [0, 0, 0, 1, 1, 1]

"""Preference optimization as a run: layout, reference, offline pairs, resume, refusals."""

import math
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest
import torch
from safetensors.torch import load_file

from forethought.algorithms.dpo.config import DPOConfig, LossType
from forethought.algorithms.dpo.samples import DPOContext, PairTokens, ask_reference
from forethought.algorithms.dpo.train import draw, train_dpo
from forethought.algorithms.dpo.updates import consistency_of
from forethought.configs.file import dump_config, load_any_config
from forethought.configs.parts import (
    ComputeConfig,
    OptimizerConfig,
    PromptConfig,
    RolloutConfig,
    SamplingConfig,
)
from forethought.errors import ConfigError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.losses.preference import Responses
from forethought.models.loading import load_pretrained
from forethought.rollouts.scripted import expert_response, play, random_response
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import open_task
from forethought.runs.metrics import read_metrics
from forethought.targets.pairs import Pair
from forethought.training.reference import (
    ANCHOR_FILE,
    REFERENCE_FILE,
    copy_of_trained,
    start_reference,
)
from forethought.training.run import Run
from tests.unit.algorithms.dpo.small_bandit import ENVIRONMENT, pairs_in_play, save_small_model

LOSS_TYPES: list[LossType] = [
    *("sigmoid", "constant_action", "apw", "ipo", "robust", "rpo", "hinge", "kto", "simpo"),
    *("refuel", "xpo"),
]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes of the expert and of chance, who meet in the same states."""
    folder = tmp_path_factory.mktemp("data")
    task = open_task(ENVIRONMENT, PromptConfig(), default_image_size=None)
    for name, answer in (("expert", expert_response("thoughts")), ("random", random_response(0))):
        episodes = play(task.id, task.factory(), task.prompter, answer, range(12))
        write_shard(folder / f"{name}.parquet", list(episodes))
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("model"))


def settings(model: Path, data: Path, output: Path) -> DPOConfig:
    return DPOConfig(
        model=str(model),
        output=str(output),
        data=str(data),
        loss_type="sigmoid",
        epochs=3,
        batch_size=4,
        checkpoint_every=1,
        environment=ENVIRONMENT,
        rollout=RolloutConfig(sampling=SamplingConfig(temperature=1.0), on_invalid="penalize"),
        optimizer=OptimizerConfig(learning_rate=1e-3, schedule="constant"),
        compute=ComputeConfig(threads=1),
    )


class OneOf:
    """A run in one of several processes, with so many pairs each."""

    def __init__(self, process: int, *counts: int) -> None:
        self._process, self._counts = process, counts

    def gather(self, items: list[int]) -> list[int]:
        assert items == [self._counts[self._process]]
        return list(self._counts)

    def offset(self, count: int) -> int:
        assert count == self._counts[self._process]
        return sum(self._counts[: self._process])


def drawn(run: OneOf, pairs: Sequence[str], iteration: int = 0) -> list[str]:
    """Three of all; letters stand for pairs."""
    config = DPOConfig(pairs_per_iteration=3, batch_size=3)
    nobody: Any = None
    context = DPOContext(nobody, nobody, nobody, nobody, config, cast(Run, run))
    return cast(list[str], draw(cast(list[Pair], list(pairs)), context, iteration))


def test_at_most_so_many_pairs_are_drawn() -> None:
    alone = OneOf(0, 8)
    iterations = [drawn(alone, "abcdefgh", n) for n in range(20)]
    assert all(len(set(chosen)) == 3 and chosen == sorted(chosen) for chosen in iterations)
    assert {letter for chosen in iterations for letter in chosen} == set("abcdefgh")
    assert drawn(alone, "abcdefgh", 7) == iterations[7]
    assert drawn(OneOf(0, 2), "ab") == ["a", "b"]


def test_all_processes_together_draw_as_many() -> None:
    """The same three that one process draws of all."""
    for n in range(20):
        first, second = drawn(OneOf(0, 5, 3), "abcde", n), drawn(OneOf(1, 5, 3), "fgh", n)
        assert first + second == drawn(OneOf(0, 8), "abcdefgh", n)


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_every_objective_prefers_the_chosen(
    loss_type: LossType, model: Path, data: Path, tmp_path: Path
) -> None:
    config = replace(
        settings(model, data, tmp_path / "run"),
        loss_type=loss_type,
        pairing="matched" if loss_type == "refuel" else "trajectory",
        weight_normalization="geometric_mean",  # p(a|T) of a model that knows nothing is 1e-20
    )
    log = read_metrics(train_dpo(config) / "metrics.jsonl")
    margins = log.column("preference_margin").values
    assert len(margins) == 3
    assert margins[-1] > margins[0]
    assert not math.isnan(log.column("gradient_norm").values[-1])


def test_the_reference_does_not_move_unless_told_to(
    model: Path, data: Path, tmp_path: Path
) -> None:
    config = settings(model, data, tmp_path / "never")
    never = read_metrics(train_dpo(config) / "metrics.jsonl").column("chosen_log_ratio").values
    fresh = replace(config, output=str(tmp_path / "always"), ref_model_sync_every=1)
    always = read_metrics(train_dpo(fresh) / "metrics.jsonl").column("chosen_log_ratio").values
    assert never[0] == always[0]
    assert abs(always[-1]) < abs(never[-1])


@pytest.mark.parametrize("reference", ["start", "reference"])
def test_apc_holds_to_the_start_or_to_a_reference_that_moves(
    reference: Literal["start", "reference"], model: Path, data: Path, tmp_path: Path
) -> None:
    config = replace(
        settings(model, data, tmp_path / "run"),
        epochs=2,
        ref_model_sync_every=1,
        consistency_reference=reference,
    )
    checkpoint = train_dpo(config) / "checkpoints" / "step_2"
    began, ended = (
        copy_of_trained(HuggingFacePolicy(load_pretrained(str(path)), slots=1).module.model)
        for path in (model, checkpoint / "model")
    )
    moved = next(name for name in began if not torch.equal(began[name], ended[name]))
    assert torch.equal(load_file(checkpoint / REFERENCE_FILE)[moved], ended[moved])
    assert (checkpoint / ANCHOR_FILE).exists() == config.has_apc_reference == (reference == "start")
    if config.has_apc_reference:
        assert torch.equal(load_file(checkpoint / ANCHOR_FILE)[moved], began[moved])


@pytest.mark.parametrize("is_held", [True, False])
def test_each_pair_knows_its_reference_and_what_apc_holds_to(is_held: bool, model: Path) -> None:
    policy = HuggingFacePolicy(load_pretrained(str(model)), slots=1)
    pairs = pairs_in_play("task_type")
    reference, anchor = start_reference(policy), start_reference(policy)
    alone: Any = SimpleNamespace(autocast=nullcontext, gather=lambda items: items)  # type: ignore[reportUnknownLambdaType]
    updater: Any = SimpleNamespace(module=policy.module)
    held = anchor if is_held else reference
    context = DPOContext(policy, updater, reference, held, DPOConfig(data="stored"), alone)
    before = ask_reference(pairs, context).samples
    with torch.no_grad():
        for parameter in policy.module.model.parameters():
            parameter.mul_(1.1)
    reference.refresh()
    after = ask_reference(pairs, context).samples
    for was, now in zip(before, after, strict=True):
        for first, second in zip(was, now, strict=True):
            assert first.apc_action == first.reference_action
            assert second.reference_action != first.reference_action
            expected = first.reference_action if is_held else second.reference_action
            assert second.apc_action == expected


def test_apc_by_hand() -> None:
    """p of the chosen action .5 against .3, of the rejected one .4 against .9: .04, and
    (.04 + .25) / 2 of both."""
    nothing = torch.zeros(1)
    chosen, rejected = (torch.tensor([math.log(p)], requires_grad=True) for p in (0.5, 0.4))
    sides = [Responses(nothing, p, nothing, nothing, nothing, nothing) for p in (chosen, rejected)]
    layout = PairTokens(
        cast(Any, None),
        nothing,
        torch.tensor([0]),
        torch.tensor([1]),
        (nothing, nothing, nothing, nothing),
        torch.tensor([math.log(0.3), math.log(0.9)]),
        torch.zeros(2),
    )
    alone = consistency_of(*sides, layout, DPOConfig())
    both = consistency_of(*sides, layout, DPOConfig(consistency_sides="both"))
    assert alone.item() == pytest.approx(0.04)
    assert both.item() == pytest.approx(0.145)
    # 2 p (p - q), divided by how many there are.
    assert torch.autograd.grad(alone, chosen)[0].item() == pytest.approx(2 * 0.5 * 0.2)
    slopes = torch.autograd.grad(both, [chosen, rejected])
    assert slopes[0].item() == pytest.approx(0.5 * 0.2)
    assert slopes[1].item() == pytest.approx(0.4 * -0.5)


@pytest.mark.parametrize("ref_model_sync_every", [None, 2])
def test_resumed_equals_never_stopped(
    ref_model_sync_every: int | None, model: Path, data: Path, tmp_path: Path
) -> None:
    config = replace(
        settings(model, data, tmp_path / "run"), ref_model_sync_every=ref_model_sync_every
    )
    run = train_dpo(config)
    last = Path("checkpoints/step_3")
    whole, log = load_file(run / last / "model/model.safetensors"), run / "metrics.jsonl"
    said = log.read_text(encoding="utf-8")
    shutil.rmtree(run / last)
    train_dpo(config, existing="resume")
    resumed = load_file(run / last / "model/model.safetensors")
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert log.read_text(encoding="utf-8") == said


def test_data_without_pairs_is_refused(model: Path, data: Path, tmp_path: Path) -> None:
    config = replace(settings(model, data, tmp_path / "run"), margin=1000.0)
    with pytest.raises(ConfigError, match="holds no two responses of one start at the same step"):
        train_dpo(config)


def test_settings_come_back_equal(tmp_path: Path) -> None:
    config = DPOConfig(loss_type="simpo", beta=2.0, pairing="mcts", ref_model_sync_every=3)
    (tmp_path / "config.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_any_config(tmp_path / "config.yaml") == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": 0.0}, "beta is 0.0 — expected above 0"),
        ({"label_smoothing": 0.5}, "label_smoothing is 0.5 — expected 0 up to 0.5"),
        ({"group_size": 5}, r"group_size is 5 — expected a divisor of rollout.num_envs \(64\)"),
        ({"branches": 1}, "branches is 1 — expected 2 to 64"),
        ({"horizon": 4}, "horizon is 4 — expected 1 or more, with pairing branch; or null"),
        ({"batch_size": 257}, r"batch_size is 257 — expected 1 to pairs_per_iteration \(256\)"),
        (
            {"group_size": 1},
            "group_size is 1 — expected 2 or more with pairing trajectory and group start",
        ),
        (
            {"pairing": "branch", "pair_group": "task_type"},
            "pair_group is 'task_type' — expected start without pairing trajectory",
        ),
        ({"ref_model_sync_every": 0}, "ref_model_sync_every is 0 — expected 1 or more, or null"),
        (
            {"data": "x", "pairing": "branch"},
            "pairing is 'branch' — expected trajectory or matched with data",
        ),
        (
            {"data": "x", "prompt": PromptConfig(return_bins=4)},
            r"prompt\.return_bins is 4 — expected 0 with data",
        ),
        (
            {"prompt": PromptConfig(format="action_only")},
            "loss_type is 'apw' — expected a loss_type of whole completions",
        ),
    ],
)
def test_refused_settings(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(DPOConfig(), **changes)  # pyright: ignore[reportArgumentType]

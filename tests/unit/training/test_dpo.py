"""Preference optimisation as a run: layout, reference, offline pairs, resume, refusals."""

import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file

from forethought.config_dpo import DPOConfig, Objective
from forethought.config_file import dump_config, load_any_config
from forethought.config_parts import (
    ComputeConfig,
    EnvironmentConfig,
    OptimizerConfig,
    PromptConfig,
    RolloutConfig,
)
from forethought.errors import ConfigError
from forethought.losses.preference.dpo import dpo_loss
from forethought.policies.batching import Example, build_batch
from forethought.policies.huggingface import HuggingFacePolicy
from forethought.policies.tiny import TinySize, make_tiny
from forethought.rollouts.scripted import expert_answer, play, random_answer
from forethought.rollouts.store import write_shard
from forethought.rollouts.world import open_world
from forethought.runs.metrics import read_metrics
from forethought.targets.pairs import Compared, Pair, candidates_of, make_pairs
from forethought.targets.preference import trajectory_scores
from forethought.training.dpo import Learner, draw, train_dpo
from forethought.training.pair_samples import (
    PairSample,
    answers_of,
    lay_out_pairs,
    plan_pairs,
    to_pair_sample,
)
from forethought.training.run import Run

WORLD = EnvironmentConfig("Bandit", options=("arms=3",))
SIZE = TinySize(hidden_size=16, intermediate_size=16, layers=1, heads=2, vision_hidden_size=8)
OBJECTIVES: list[Objective] = [
    *("dpo", "constant_action", "apw", "ipo", "rdpo", "rpo", "hinge", "kto", "simpo")
]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes of the expert and of chance, who meet in the same states."""
    folder = tmp_path_factory.mktemp("data")
    world = open_world(WORLD, PromptConfig(), default_image_size=None)
    for name, answer in (("expert", expert_answer("thoughts")), ("random", random_answer(0))):
        episodes = play(world.id, world.factory(), world.prompter, answer, range(12))
        write_shard(folder / f"{name}.parquet", list(episodes))
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    texts = ['the right answer is a, so I choose b. Answer as JSON: {"thoughts", "action"} Give']
    HuggingFacePolicy(make_tiny(texts * 4, seed=0, size=SIZE), slots=1).save(folder)
    return folder


def settings(model: Path, data: Path, output: Path) -> DPOConfig:
    return DPOConfig(
        model=str(model),
        output=str(output),
        data=str(data),
        objective="dpo",
        epochs=3,
        batch_size=4,
        checkpoint_every=1,
        environment=WORLD,
        rollout=RolloutConfig(temperature=1.0, on_invalid="penalise"),
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
    learner = Learner(nobody, nobody, nobody, config, cast(Run, run))
    return cast(list[str], draw(cast(list[Pair], list(pairs)), learner, iteration))


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


def pairs_in_play(compared: Compared) -> list[Pair]:
    world = open_world(WORLD, PromptConfig(), default_image_size=None)
    candidates = [
        candidate
        for answer in (expert_answer("thoughts"), random_answer(0))
        for t in play(world.id, world.factory(), world.prompter, answer, range(12))
        for candidate in candidates_of(t, trajectory_scores(t, score="gain", gamma=0.9))
    ]
    return make_pairs(candidates, margin=0.0, most_per_group=4, compared=compared)


@pytest.fixture(scope="module")
def policy(model: Path) -> HuggingFacePolicy:
    from forethought.policies.loading import load_pretrained

    return HuggingFacePolicy(load_pretrained(str(model)), slots=1)


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    """Of equal prompts, which share a row, and of unequal ones, which do not."""
    return pairs_in_play("state") + pairs_in_play("task_type")


@pytest.fixture(scope="module")
def samples(pairs: list[Pair], policy: HuggingFacePolicy) -> list[PairSample]:
    return [to_pair_sample(pair, policy) for pair in pairs]


def test_each_response_is_scored_after_its_own_prompt(
    pairs: list[Pair], samples: list[PairSample], policy: HuggingFacePolicy
) -> None:
    for pair, sample in zip(pairs, samples, strict=True):
        for side, example in zip(pair, (sample.winner.example, sample.loser.example), strict=True):
            assert example.prompt.token_ids == policy.prompt(side.step.prompt.messages).token_ids
    prompts = {(s.winner.example.prompt.key, s.loser.example.prompt.key) for s in samples}
    assert {ours == theirs for ours, theirs in prompts} == {True, False}


def gradient_of(loss: torch.Tensor, policy: HuggingFacePolicy) -> dict[str, torch.Tensor]:
    policy.module.zero_grad()
    loss.backward()
    return {
        name: parameter.grad.clone()
        for name, parameter in policy.module.named_parameters()
        if parameter.grad is not None
    }


@pytest.mark.parametrize("compared", ["state", "start", "task_type"])
def test_at_the_reference_the_gradient_is_a_policy_gradient(
    compared: Compared, policy: HuggingFacePolicy
) -> None:
    """REINFORCE with advantage +1 for the chosen and -1 for the rejected response, times β/2.

    Each response alone after its own prompt: nothing of the pair's layout is taken for granted.
    """
    beta, parts = 0.3, pairs_in_play(compared)
    assert len(parts) >= 3
    policy.module.without_dropout()
    bare = [to_pair_sample(pair, policy) for pair in parts]
    with torch.no_grad():
        layout = lay_out_pairs(bare, policy.encoder, policy.device)
        known = answers_of(policy.module(layout.tokens, temperature=0.7), layout)
    samples = [
        PairSample(
            *(
                sample._replace(
                    reference_thoughts=float(answers.thoughts_P[n]),
                    reference_action=float(answers.action_P[n]),
                )
                for sample, answers in zip(both, known, strict=True)
            )
        )
        for n, both in enumerate(bare)
    ]
    layout = lay_out_pairs(samples, policy.encoder, policy.device)
    winners, losers = answers_of(policy.module(layout.tokens, temperature=0.7), layout)
    found = dpo_loss(winners=winners, losers=losers, beta=beta)
    assert found.loss.item() == pytest.approx(math.log(2), abs=1e-5)
    ours = gradient_of(found.loss, policy)

    surrogate = torch.zeros(())
    for pair in parts:
        for side, advantage in zip(pair, (1.0, -1.0), strict=True):
            prompt = policy.prompt(side.step.prompt.messages)
            ids = policy.encoder.tokenise_answer(side.step.completion.text)
            alone = build_batch([[Example(prompt, ids)]], policy.encoder)
            logprobs_BT = policy.module(alone, temperature=0.7).logprobs_BT
            surrogate = surrogate - advantage * logprobs_BT.sum() / len(parts)
    theirs = gradient_of(surrogate, policy)
    assert ours.keys() == theirs.keys()
    largest = max(float(gradient.abs().max()) for gradient in theirs.values())
    assert largest > 1e-3
    for name, gradient in theirs.items():
        assert (ours[name] - beta / 2 * gradient).abs().max() < 1e-4 * largest, name


def test_written_answers_are_split_where_their_action_begins(
    samples: list[PairSample], policy: HuggingFacePolicy
) -> None:
    winner, loser = samples[0]
    for side in (winner, loser):
        ids = side.example.completion_ids
        split = side.is_thought.index(False)
        action = policy.encoder.detokenise(ids[split:]).text
        assert '"action": ' in action
        assert '"thoughts"' not in action
        assert not any(side.is_thought[split:])
        assert ids[-1] in policy.encoder.stop_ids
        assert side.sampled_logprobs == []
    assert any(winner.is_thought)


def test_in_a_batch_as_alone(samples: list[PairSample], policy: HuggingFacePolicy) -> None:
    """Winners are winners, thoughts are thoughts: whatever shares a row or a batch."""
    policy.module.eval()
    layout = lay_out_pairs(samples, policy.encoder, policy.device)
    with torch.no_grad():
        winners, losers = answers_of(policy.module(layout.tokens, temperature=0.7), layout)
    for side, answers in ((0, winners), (1, losers)):
        for index, sample in enumerate(samples):
            alone = policy.score([sample[side].example], temperature=0.7).logprobs_BT[0]
            is_thought = torch.tensor(sample[side].is_thought)
            thoughts, action = alone[is_thought].sum(), alone[~is_thought].sum()
            assert answers.thoughts_P[index].item() == pytest.approx(float(thoughts), abs=1e-3)
            assert answers.action_P[index].item() == pytest.approx(float(action), abs=1e-3)
            assert answers.thought_tokens_P[index] == is_thought.sum()
            assert answers.action_tokens_P[index] == (~is_thought).sum()


def test_references_stay_with_their_answers(
    samples: list[PairSample], policy: HuggingFacePolicy
) -> None:
    numbered = [
        PairSample(
            winner._replace(reference_thoughts=float(n), reference_action=n + 0.25),
            loser._replace(reference_thoughts=n + 0.5, reference_action=n + 0.75),
        )
        for n, (winner, loser) in enumerate(samples)
    ]
    layout = lay_out_pairs(numbered, policy.encoder, policy.device)
    winners, losers = answers_of(policy.module(layout.tokens, temperature=1.0), layout)
    n = torch.arange(len(samples)).float()
    torch.testing.assert_close(winners.reference_thoughts_P, n)
    torch.testing.assert_close(winners.reference_action_P, n + 0.25)
    torch.testing.assert_close(losers.reference_thoughts_P, n + 0.5)
    torch.testing.assert_close(losers.reference_action_P, n + 0.75)


@pytest.mark.parametrize("most", [1, 200, 400, 100000])
def test_micro_batches_hold_whole_pairs(
    most: int, samples: list[PairSample], policy: HuggingFacePolicy
) -> None:
    parts = plan_pairs(samples, most)
    assert sorted(index for part in parts for index in part) == list(range(len(samples)))
    for part in parts:
        tokens = lay_out_pairs([samples[i] for i in part], policy.encoder, policy.device).tokens
        assert len(part) == 1 or tokens.input_ids_RL.numel() <= most
    assert (len(parts) == len(samples)) == (most == 1)
    assert (len(parts) == 1) == (most == 100000)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_prefers_the_winners(
    objective: Objective, model: Path, data: Path, tmp_path: Path
) -> None:
    config = replace(
        settings(model, data, tmp_path / "run"),
        objective=objective,
        weight_normalisation="geometric_mean",  # p(a|T) of a model that knows nothing is 1e-20
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
    never = read_metrics(train_dpo(config) / "metrics.jsonl").column("winner_log_ratio").values
    fresh = replace(config, output=str(tmp_path / "always"), refresh_every=1)
    always = read_metrics(train_dpo(fresh) / "metrics.jsonl").column("winner_log_ratio").values
    assert never[0] == always[0]
    assert abs(always[-1]) < abs(never[-1])


@pytest.mark.parametrize("refresh_every", [None, 2])
def test_resumed_equals_never_stopped(
    refresh_every: int | None, model: Path, data: Path, tmp_path: Path
) -> None:
    config = replace(settings(model, data, tmp_path / "run"), refresh_every=refresh_every)
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
    config = DPOConfig(objective="simpo", beta=2.0, pairing="mcts", refresh_every=3)
    (tmp_path / "config.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_any_config(tmp_path / "config.yaml") == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": 0.0}, "beta is 0.0 — expected above 0"),
        ({"label_noise": 0.5}, "label_noise is 0.5 — expected 0 up to 0.5"),
        ({"group_size": 5}, r"group_size is 5 — expected a divisor of rollout.slots \(64\)"),
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
        ({"refresh_every": 0}, "refresh_every is 0 — expected 1 or more, or null"),
        (
            {"data": "x", "pairing": "branch"},
            "pairing is 'branch' — expected trajectory or matched with data",
        ),
        (
            {"data": "x", "prompt": PromptConfig(return_levels=4)},
            r"prompt\.return_levels is 4 — expected 0 with data",
        ),
        (
            {"prompt": PromptConfig(format="action_only")},
            "objective is 'apw' — expected an objective of whole answers",
        ),
    ],
)
def test_refused_settings(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(DPOConfig(), **changes)  # pyright: ignore[reportArgumentType]

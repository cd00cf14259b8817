"""Conversations as rows: what is learned of them, and how many make a batch."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch

from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.train import rows_in_a_batch, train_sft
from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.models.batching import Example
from forethought.offline.rows import Row, lay_out_rows, mark_replies, pack, to_rows
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.shard_files import ImageEncoder
from forethought.rollouts.store import write_shard
from forethought.rollouts.task import open_task
from forethought.runs.metrics import read_metrics
from forethought.training.behavior_cloning import ObservationTokens, cloning_loss
from forethought.training.run import Run
from forethought.types import Message
from tests.unit.algorithms.offline_runs import OneProcess


@pytest.fixture(scope="module")
def policy(small_model: Path) -> HuggingFacePolicy:
    return load_policy(str(small_model), slots=2)


@pytest.fixture(scope="module")
def answers(policy: HuggingFacePolicy) -> list[Example]:
    """Three answers of one conversation."""
    messages = [Message("user", "row 0, column 1")]
    examples: list[Example] = []
    for move in ("down", "right", "down"):
        text = f'{{\n"action": "{move}"\n}}'
        prompt = policy.prompt(messages)
        examples.append(Example(prompt, policy.encoder.tokenize_response(text)))
        messages += [Message("assistant", text), Message("user", "row 1, column 1")]
    return examples


def loss_of(
    rows: list[Row], policy: HuggingFacePolicy, observation_loss_weight: float = 0.0
) -> tuple[float, torch.Tensor]:
    """With the gradient of the output layer."""
    actions, run = sum(row.actions for row in rows), cast(Run, OneProcess())
    policy.module.zero_grad()
    loss = torch.zeros(())
    for batch in lay_out_rows(rows, policy.encoder, policy.device, 4096):
        told = ObservationTokens(
            mark_replies(batch, rows), observation_loss_weight, torch.zeros(())
        )
        replies = told if observation_loss_weight else None
        tokens, is_action_BT, _ = batch
        part = cloning_loss(tokens, is_action_BT, actions, policy, run, torch.zeros(()), replies)
        part.backward()
        loss += part.detach()
    (gradient,) = (p.grad for n, p in policy.module.named_parameters() if "embed_tokens" in n)
    assert gradient is not None
    return float(loss), gradient.clone()


def all_learned(row: Row) -> Row:
    """The row taken as one answer."""
    length = len(row.completion_ids)
    return row._replace(is_action=(True,) * length, is_reply=(False,) * length, responses=1)


def test_together_as_each_alone(answers: list[Example], policy: HuggingFacePolicy) -> None:
    (row,) = to_rows([(answer, True) for answer in answers], None)
    alone = [pack(answer, ImageEncoder()) for answer in answers]
    assert row.length == answers[-1].length < sum(one.length for one in alone)
    (loss, gradient), (expected, expected_gradient) = loss_of([row], policy), loss_of(alone, policy)
    assert loss == pytest.approx(expected, rel=1e-5)
    torch.testing.assert_close(gradient, expected_gradient, atol=1e-5, rtol=1e-3)
    assert gradient.abs().max() > 1e-3


def test_what_is_not_learned_stands_before_what_is(
    answers: list[Example], policy: HuggingFacePolicy
) -> None:
    (row,) = to_rows(zip(answers, (True, False, True), strict=True), None)
    lengths = [len(answer.completion_ids) for answer in answers]
    assert row.length == answers[-1].length
    assert (row.actions, row.responses) == (lengths[0] + lengths[2], 2)
    assert row.is_action[: lengths[0]] == (True,) * lengths[0]
    assert row.is_action[-lengths[2] :] == (True,) * lengths[2]
    alone = to_rows([(answers[0], True)], None) + to_rows([(answers[2], True)], None)
    assert loss_of([row], policy)[0] == pytest.approx(loss_of(alone, policy)[0], rel=1e-5)


def test_replies_weigh_as_asked(answers: list[Example], policy: HuggingFacePolicy) -> None:
    """Against the row taken as one answer: all of its tokens, then the answers alone."""
    (row,) = to_rows([(answer, True) for answer in answers], None)
    lengths = [len(answer.completion_ids) for answer in answers]
    assert row.replies == row.length - len(answers[0].prompt.token_ids) - sum(lengths)
    assert row.is_reply[lengths[0]]
    assert not any(a and r for a, r in zip(row.is_action, row.is_reply, strict=True))
    everything = all_learned(row)
    all_loss, all_gradient = loss_of([everything], policy)
    mine, mine_gradient = loss_of([row], policy)
    found, gradient = loss_of([row], policy, observation_loss_weight=0.3)
    scale = everything.actions / row.actions
    assert found == pytest.approx(mine + 0.3 * (all_loss * scale - mine), rel=1e-5)
    expected = mine_gradient + 0.3 * (all_gradient * scale - mine_gradient)
    torch.testing.assert_close(gradient, expected, atol=1e-5, rtol=1e-3)
    assert (gradient - mine_gradient).abs().max() > 1e-3


def test_a_run_learns_the_replies(small_model: Path, tmp_path: Path) -> None:
    prompt = PromptConfig(format="action_only")
    wordle = EnvironmentConfig("Wordle", options=("replies=known",))
    task = open_task(wordle, prompt, default_image_size=None)
    games = play(task.id, task.factory(), task.prompter, expert_response("action_only"), range(8))
    write_shard(tmp_path / "games.parquet", list(games))
    config = SFTConfig(
        model=str(small_model),
        output=str(tmp_path / "run"),
        data=str(tmp_path / "games.parquet"),
        observation_loss_weight=1.0,
        epochs=10.0,
        batch_size=8,
        environment=wordle,
        prompt=prompt,
    )
    metrics = read_metrics(train_sft(config) / "metrics.jsonl")
    first, *_, last = metrics.column("observation_loss").values
    assert last < 0.8 * first
    other = replace(config, output=str(tmp_path / "other"), observation_loss_weight=0.0, epochs=1.0)
    assert "observation_loss" not in read_metrics(train_sft(other) / "metrics.jsonl").names


def test_nothing_learned_no_row(answers: list[Example]) -> None:
    assert to_rows([(answers[0], False)], None) == []
    (row,) = to_rows([(answers[1], False), (answers[0], True)], None)
    assert row == pack(answers[0], ImageEncoder())


@pytest.mark.parametrize(
    ("rows", "answers", "expected"),
    [(100, 100, 32), (10, 160, 2), (10, 1000, 1)],
    ids=["each alone", "sixteen in each", "more than a batch in each"],
)
def test_a_batch_holds_so_many_answers(rows: int, answers: int, expected: int) -> None:
    assert rows_in_a_batch(SFTConfig(batch_size=32), rows, answers) == expected

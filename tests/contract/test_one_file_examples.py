"""The examples in one file compute what the library computes: loss and gradient of one batch."""

import copy
import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest
import torch
from examples import dpo_in_one_file as dpo
from examples import q_sft_in_one_file as q_sft
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from forethought.algorithms.dpo.samples import (
    PairSample,
    ResponseSample,
    lay_out_pairs,
    responses_of,
)
from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.q_sft.context import OfflineData, QSFTContext, QSFTModels
from forethought.algorithms.q_sft.targets import compute_targets
from forethought.algorithms.q_sft.train import value_loss
from forethought.configs.acting import ActingConfig, SupportConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.losses.preference import dpo_loss
from forethought.models.batching import Example
from forethought.models.loading import LoadedModel
from forethought.offline.episodes import Episode, lay_out
from forethought.offline.rows import Row
from forethought.targets.reward_map import ENVIRONMENT_UNITS
from forethought.types import Prompt
from forethought.value_guided.policy import Settings
from tests.unit.algorithms.offline_runs import OneProcess


class Update(NamedTuple):
    loss: Tensor
    gradient: dict[str, Tensor]


def update_of(model: nn.Module, loss: Tensor) -> Update:
    model.zero_grad()
    loss.backward()
    gradient = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    return Update(loss.detach(), gradient)


def assert_equal(one: Update, other: Update) -> None:
    """To 1e-6 and 1e-6 of the gradient: fp32; and not because both are nothing."""
    torch.testing.assert_close(one.loss, other.loss, atol=1e-6, rtol=0)
    assert one.gradient.keys() == other.gradient.keys()
    for name, expected in other.gradient.items():
        torch.testing.assert_close(one.gradient[name], expected, atol=1e-6, rtol=1e-6)
    assert max(float(g.abs().max()) for g in one.gradient.values()) > 1e-2


def policy_of(model: LlamaForCausalLM, words: Sequence[str]) -> HuggingFacePolicy:
    """The example's model as the library's policy."""
    splitter = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "end"))
    splitter.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=splitter, eos_token="end")
    return HuggingFacePolicy(LoadedModel(model, tokenizer), slots=1)


def stored(episode: q_sft.Episode) -> Episode:
    """The example's episode as the library's: each step a row."""
    rows = [
        Row(
            tuple(step.prompt),
            (),
            tuple(step.completion),
            is_action=(True,) * len(step.completion),
            is_reply=(False,) * len(step.completion),
            responses=1,
        )
        for step in episode.steps
    ]
    return Episode(
        rows=tuple(rows),
        completion_lengths=tuple(len(step.completion) for step in episode.steps),
        rewards=tuple(step.reward for step in episode.steps),
        terminated=episode.terminated,
        bootstrap_value=None,
    )


def moved(model: nn.Module, seed: int, by: float) -> None:
    """Gives each of the three models a distribution of its own."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += by * torch.randn(parameter.shape, generator=generator)


def test_q_sft(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of untrained models the best of many ratios is above 1, and every target would be cut.
    monkeypatch.setattr(q_sft, "MIN_PROBABILITY", 0.15)
    torch.manual_seed(0)
    dice = random.Random(0)
    walks = [q_sft.walk(dice) for _ in range(24)]
    assert {walk.terminated for walk in walks} == {True, False}
    policy = policy_of(q_sft.make_model(), [*q_sft.WORDS, "end", "residual"])
    support = SupportConfig(min_probability=q_sft.MIN_PROBABILITY, floor=q_sft.FLOOR)
    config = QSFTConfig(gamma=q_sft.GAMMA, support=support)
    library = QSFTModels(policy, Settings(ActingConfig(), support), is_joint=False)
    library.begin("likelihood")
    assert library.likelihood is not None
    assert library.target is not None
    moved(library.likelihood.module, 1, 0.1)
    moved(library.target.module, 2, 0.1)
    behavior, likelihood, target = (
        copy.deepcopy(module.model)
        for module in (policy.module, library.likelihood.module, library.target.module)
    )

    episodes = [stored(walk) for walk in walks]
    data = OfflineData(episodes, ENVIRONMENT_UNITS, q_sft.RESIDUAL)
    learner = QSFTContext(library, data, config, OneProcess())  # type: ignore[arg-type]
    parts = lay_out(episodes, policy.encoder, policy.device, 4096)
    judged, _ = compute_targets(episodes, parts, learner)
    known = sum(episode.known_actions for episode in episodes)
    module = library.likelihood.module
    library_update = update_of(
        module.model, sum(value_loss(one, known, learner, torch.zeros(())) for one in judged)
    )

    targets = q_sft.bellman_targets(behavior, target, walks)
    assert len(set(targets.targets_N.tolist())) > 8
    loss = q_sft.q_sft_loss(likelihood, q_sft.steps_of(walks), targets)
    assert_equal(update_of(likelihood, loss), library_update)


def test_dpo() -> None:
    torch.manual_seed(0)
    model = dpo.make_model()
    reference = copy.deepcopy(model)
    moved(model, 1, 0.02)
    prompt = dpo.encode("The right answer is a.")
    short, long = ([*dpo.encode(dpo.answer_of("a", action)), dpo.END] for action in "ab")
    del long[3]
    pairs = [
        dpo.Pair(dpo.Sample(prompt, short), dpo.Sample(prompt, long)),
        dpo.Pair(dpo.Sample(prompt, long[:-2]), dpo.Sample(prompt, short[2:])),
    ]

    def sample_of(sample: dpo.Sample) -> ResponseSample:
        with torch.no_grad():
            known = float(dpo.logprobs_of(reference, [sample]))
        example = Example(Prompt((), tuple(sample.prompt)), tuple(sample.completion))
        is_thought = [False] * len(sample.completion)
        return ResponseSample(example, is_thought, [], reference_action=known)

    policy = policy_of(copy.deepcopy(model), [*dpo.WORDS])
    samples = [PairSample(*map(sample_of, pair)) for pair in pairs]
    layout = lay_out_pairs(samples, policy.encoder, policy.device)
    chosen, rejected = responses_of(policy.module(layout.tokens), layout)
    library = dpo_loss(chosen=chosen, rejected=rejected, beta=dpo.BETA).loss
    library_update = update_of(policy.module.model, library)
    assert_equal(update_of(model, dpo.dpo_loss(model, reference, pairs)), library_update)

"""Pairs as training data: each response after its own prompt, in a batch as alone."""

import math
from pathlib import Path

import pytest
import torch

from forethought.algorithms.dpo.samples import (
    PairSample,
    lay_out_pairs,
    plan_pairs,
    responses_of,
    to_pair_samples,
)
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.losses.preference import dpo_loss
from forethought.models.batching import Example, build_batch
from forethought.models.loading import load_pretrained
from forethought.targets.pairs import Compared, Pair
from tests.unit.algorithms.dpo.small_bandit import pairs_in_play, save_small_model


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def policy(model: Path) -> HuggingFacePolicy:
    return HuggingFacePolicy(load_pretrained(str(model)), slots=1)


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    """Of equal prompts, which share a row, and of unequal ones, which do not."""
    return pairs_in_play("state") + pairs_in_play("task_type")


@pytest.fixture(scope="module")
def samples(pairs: list[Pair], policy: HuggingFacePolicy) -> list[PairSample]:
    return to_pair_samples(pairs, policy)


def test_each_response_is_scored_after_its_own_prompt(
    pairs: list[Pair], samples: list[PairSample], policy: HuggingFacePolicy
) -> None:
    for pair, sample in zip(pairs, samples, strict=True):
        assert [side.score for side in sample] == [side.score for side in pair]
        for side, example in zip(
            pair, (sample.chosen.example, sample.rejected.example), strict=True
        ):
            assert example.prompt.token_ids == policy.prompt(side.step.prompt.messages).token_ids
    prompts = {(s.chosen.example.prompt.key, s.rejected.example.prompt.key) for s in samples}
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
    bare = to_pair_samples(parts, policy)
    with torch.no_grad():
        layout = lay_out_pairs(bare, policy.encoder, policy.device)
        known = responses_of(policy.module(layout.tokens, temperature=0.7), layout)
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
    chosen, rejected = responses_of(policy.module(layout.tokens, temperature=0.7), layout)
    found = dpo_loss(chosen=chosen, rejected=rejected, beta=beta)
    assert found.loss.item() == pytest.approx(math.log(2), abs=1e-5)
    ours = gradient_of(found.loss, policy)

    surrogate = torch.zeros(())
    for pair in parts:
        for side, advantage in zip(pair, (1.0, -1.0), strict=True):
            prompt = policy.prompt(side.step.prompt.messages)
            ids = policy.encoder.tokenize_response(side.step.completion.text)
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
    chosen, rejected = samples[0]
    for side in (chosen, rejected):
        ids = side.example.completion_ids
        split = side.is_thought.index(False)
        action = policy.encoder.detokenize(ids[split:]).text
        assert '"action": ' in action
        assert '"thoughts"' not in action
        assert not any(side.is_thought[split:])
        assert ids[-1] in policy.encoder.stop_ids
        assert side.sampled_logprobs == []
    assert any(chosen.is_thought)


def test_in_a_batch_as_alone(samples: list[PairSample], policy: HuggingFacePolicy) -> None:
    """Chosen stay chosen, thoughts are thoughts: whatever shares a row or a batch."""
    policy.module.eval()
    layout = lay_out_pairs(samples, policy.encoder, policy.device)
    with torch.no_grad():
        chosen, rejected = responses_of(policy.module(layout.tokens, temperature=0.7), layout)
    for side, answers in ((0, chosen), (1, rejected)):
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
            chosen._replace(reference_thoughts=float(n), reference_action=n + 0.25),
            rejected._replace(reference_thoughts=n + 0.5, reference_action=n + 0.75),
        )
        for n, (chosen, rejected) in enumerate(samples)
    ]
    layout = lay_out_pairs(numbered, policy.encoder, policy.device)
    chosen, rejected = responses_of(policy.module(layout.tokens, temperature=1.0), layout)
    n = torch.arange(len(samples)).float()
    torch.testing.assert_close(chosen.reference_thoughts_P, n)
    torch.testing.assert_close(chosen.reference_action_P, n + 0.25)
    torch.testing.assert_close(rejected.reference_thoughts_P, n + 0.5)
    torch.testing.assert_close(rejected.reference_action_P, n + 0.75)


@pytest.mark.parametrize("most", [1, 100, 200, 100000])
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

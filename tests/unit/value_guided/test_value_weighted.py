"""The policy that acts by heads: what the behavior does, times exp(β · Q)."""

from math import exp
from pathlib import Path

import pytest
import torch

from forethought.configs.acting import ValueActingConfig
from forethought.errors import PolicyError
from forethought.generation.contract import GenerationRequest, GenerationResult, Policy
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.models.actor_critic import ActorCritic
from forethought.models.loading import BEHAVIOR
from forethought.models.tiny import TinySize, make_tiny
from forethought.types import Message, Prompt
from forethought.value_guided.models import (
    HEADS_FILE,
    VALUES,
    ValueModel,
    load_settings,
    load_value_model,
    new_heads,
    reads_values,
    save_acting,
    twin_of,
)
from forethought.value_guided.policy import is_value_weighted, load_value_weighted, weigh_by_values

WORDS = ["up", "down", "left", "right", "then", "stop"]
SMALL = TinySize(hidden_size=32, intermediate_size=64, layers=2, heads=2, vision_hidden_size=16)


@pytest.mark.parametrize(
    ("acting", "weights"),
    [
        pytest.param(ValueActingConfig(beta=0.0), [0.5, 0.4, 0.1], id="beta 0: the behavior"),
        pytest.param(
            ValueActingConfig(beta=2.0), [0.5 * exp(-2), 0.4 * exp(1), 0.1 * exp(4)], id="beta 2"
        ),
        # 0.07, 1.09 and 5.46 of 6.62: the third has 0.82 of the mass, enough alone.
        pytest.param(ValueActingConfig(beta=2.0, top_p=0.8), [0.0, 0.0, 1.0], id="nucleus"),
    ],
)
def test_what_acts(acting: ValueActingConfig, weights: list[float]) -> None:
    behavior_1V = torch.tensor([[0.5, 0.4, 0.1]]).log() + 3.0
    logits = weigh_by_values(behavior_1V, torch.tensor([[-1.0, 0.5, 2.0]]), acting)
    expected = [weight / sum(weights) for weight in weights]
    assert torch.softmax(logits, -1)[0].tolist() == pytest.approx(expected)


def test_tokens_outside_the_nucleus_keep_their_order() -> None:
    """An answer that is held to them alone still takes the likelier one."""
    behavior_1V = torch.tensor([[0.5, 0.4, 0.1]]).log()
    acting = ValueActingConfig(beta=2.0, top_p=0.8)
    logits = weigh_by_values(behavior_1V, torch.tensor([[-1.0, 0.5, 2.0]]), acting)
    weights = [0.5 * exp(-2), 0.4 * exp(1)]
    held = torch.softmax(logits[:, :2], -1)[0]
    assert held.tolist() == pytest.approx([one / sum(weights) for one in weights], abs=2e-3)


def make_pair() -> tuple[HuggingFacePolicy, ValueModel]:
    """Two models of random, sharpened weights, and heads that tell tokens apart."""
    torch.set_num_threads(1)
    behavior = HuggingFacePolicy(make_tiny([" ".join(WORDS)] * 3, seed=0, size=SMALL), slots=4)
    generator = torch.Generator().manual_seed(1)
    heads = new_heads(behavior.module.model, seed=0)
    with torch.no_grad():
        for parameter in behavior.module.parameters():
            if parameter.ndim > 1:
                parameter.mul_(1.5)
        values = ValueModel(twin_of(behavior), heads)
        for parameter in values.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return behavior, values


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a checkpoint holds it."""
    folder = tmp_path_factory.mktemp("model")
    behavior, values = make_pair()
    behavior.save(folder / BEHAVIOR)
    save_acting(folder, ValueActingConfig(beta=3.0))
    assert not is_value_weighted(folder)  # A first phase has no values yet: π_φ acts.
    alone = load_policy(str(folder), slots=4)
    assert fresh(alone.module, (7, 8)).equal(fresh(behavior.module, (7, 8)))
    values.save(folder / VALUES, behavior)
    return folder


def prompts_of(policy: HuggingFacePolicy) -> list[Prompt]:
    texts = (" ".join(WORDS[: 1 + n % 5]) + str(n) for n in range(6))
    return [policy.prompt([Message("user", text)]) for text in texts]


def answers(policy: Policy, prompts: list[Prompt], temperature: float) -> list[GenerationResult]:
    for key, prompt in enumerate(prompts):
        policy.submit(GenerationRequest(key, prompt, 50 + key, 6, temperature))
    results: dict[int, GenerationResult] = {}
    while len(results) < len(prompts):
        results |= {result.key: result for result in policy.advance()}
    return [results[key] for key in range(len(prompts))]


def fresh(module: ActorCritic, ids: tuple[int, ...]) -> torch.Tensor:
    with torch.no_grad():
        return module.speakable(module.model(input_ids=torch.tensor([ids])).logits[:, -1])


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_sampled_log_probs_equal_fresh_forward_passes(saved: Path, temperature: float) -> None:
    """Through both caches, against the lower head on each prefix's own hidden state."""
    policy = load_value_weighted(saved, slots=4)
    behavior, values = make_pair()
    prompts = prompts_of(behavior)
    spread: list[float] = []
    for prompt, result in zip(prompts, answers(policy, prompts, temperature), strict=True):
        ids = result.completion.token_ids
        for place, token in enumerate(ids):
            prefix = (*prompt.token_ids, *ids[:place])
            fresh(values.trunk, prefix)
            with torch.no_grad():
                first, second, _ = values.value_head(values.trunk.last_hidden()[:, -1])
            q_BV = values.trunk.speakable(torch.minimum(first, second))
            own_BV = fresh(behavior.module, prefix)
            logits = weigh_by_values(own_BV, q_BV, policy.acting)
            expected = torch.log_softmax(logits / temperature, -1)[0, token]
            assert result.completion.logprobs[place] == pytest.approx(float(expected), abs=1e-3)
            spread.append(float(q_BV[q_BV > -1e8].std()))
    assert min(spread) > 0.1  # or the heads had nothing to say


def test_beta_zero_is_the_behavior_policy(saved: Path) -> None:
    policy = load_value_weighted(saved, slots=4)
    behavior, _ = make_pair()
    prompts = prompts_of(behavior)
    strong = [r.completion.token_ids for r in answers(policy, prompts, 0.0)]
    policy.act_as(ValueActingConfig(beta=0.0))
    expected = [r.completion.token_ids for r in answers(behavior, prompts, 0.0)]
    assert [r.completion.token_ids for r in answers(policy, prompts, 0.0)] == expected != strong
    policy.submit(GenerationRequest(0, prompts[0], 0, 4, 0.0))
    with pytest.raises(RuntimeError, match="1 requests are unanswered"):
        policy.act_as(ValueActingConfig(beta=1.0))


def test_the_slow_heads_follow() -> None:
    _, values = make_pair()
    heads = values.value_head
    before = {name: one.clone() for name, one in heads.named_parameters()}
    heads.follow(0.25)
    after = dict(heads.named_parameters())
    for name in ("second.2.weight", "first.0.bias"):
        slow, fast = before[f"slow_{name}"], before[name]
        assert not slow.equal(fast)
        torch.testing.assert_close(after[f"slow_{name}"].data, slow + 0.25 * (fast - slow))
    assert not any(one.requires_grad for name, one in after.items() if name.startswith("slow"))


def test_what_cannot_be_read_is_refused(saved: Path, tmp_path: Path) -> None:
    behavior, _ = make_pair()
    with pytest.raises(PolicyError, match=r"value_weighted\.json: got no settings"):
        load_settings(tmp_path)
    behavior.save(tmp_path)
    with pytest.raises(PolicyError, match=rf"{HEADS_FILE}: got no heads of this model"):
        load_value_model(tmp_path, behavior)


def test_a_model_that_scales_its_logits_is_refused() -> None:
    behavior, _ = make_pair()
    behavior.module.model.config.get_text_config().final_logit_softcapping = 30.0
    with pytest.raises(PolicyError, match="scales its logits"):
        new_heads(behavior.module.model, seed=0)
    assert reads_values(make_pair()[1]).value_head is None

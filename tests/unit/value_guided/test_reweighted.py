"""The policy that acts: two models in one decode loop, saved and loaded."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from forethought.configs.acting import ActingConfig, SupportConfig
from forethought.errors import PolicyError
from forethought.generation.contract import GenerationRequest, GenerationResult, Policy
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.models.actor_critic import ActorCritic
from forethought.models.loading import BEHAVIOR
from forethought.models.tiny import TinySize, make_tiny
from forethought.types import Message, Prompt
from forethought.value_guided.models import Twin, load_twin, twin_of
from forethought.value_guided.policy import (
    LIKELIHOOD,
    Settings,
    is_reweighted,
    load_reweighted,
    reweighted,
    weigh_by_likelihood,
)

WORDS = ["up", "down", "left", "right", "then", "stop"]
SMALL = TinySize(hidden_size=32, intermediate_size=64, layers=2, heads=2, vision_hidden_size=16)


@pytest.fixture(scope="module")
def pair() -> tuple[HuggingFacePolicy, Twin]:
    """Two models of random, sharpened weights."""
    torch.set_num_threads(1)
    behavior = HuggingFacePolicy(make_tiny([" ".join(WORDS)] * 3, seed=0, size=SMALL), slots=4)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in behavior.module.parameters():
            if parameter.ndim > 1:
                parameter.mul_(1.5)
        likelihood = twin_of(behavior)
        for parameter in likelihood.module.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return behavior, likelihood


def prompts_of(policy: HuggingFacePolicy) -> list[Prompt]:
    texts = (" ".join(WORDS[: 1 + n % 5]) + str(n) for n in range(9))
    return [policy.prompt([Message("user", text)]) for text in texts]


def answers(policy: Policy, prompts: list[Prompt], temperature: float) -> list[GenerationResult]:
    """Of unlike length, so that rows that go on move into the place of those that end."""
    for key, prompt in enumerate(prompts):
        policy.submit(GenerationRequest(key, prompt, 50 + key, 4 + 4 * (key % 3), temperature))
    results: dict[int, GenerationResult] = {}
    while len(results) < len(prompts):
        results |= {result.key: result for result in policy.advance()}
    return [results[key] for key in range(len(prompts))]


@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.5])
def test_beta_zero_is_the_behavior_policy(
    pair: tuple[HuggingFacePolicy, Twin], temperature: float
) -> None:
    behavior, likelihood = pair
    settings = Settings(ActingConfig(beta=0.0), SupportConfig())
    policy = reweighted(behavior, likelihood, settings, slots=4)
    prompts = prompts_of(behavior)
    expected = answers(behavior, prompts, temperature)
    found = answers(policy, prompts, temperature)
    for one, other in zip(expected, found, strict=True):
        assert one.completion.token_ids == other.completion.token_ids
        assert one.completion.logprobs == pytest.approx(other.completion.logprobs, abs=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_sampled_log_probs_equal_fresh_forward_passes(
    pair: tuple[HuggingFacePolicy, Twin], temperature: float
) -> None:
    """Through both caches, row by row, against each prefix by itself."""
    behavior, likelihood = pair
    settings = Settings(ActingConfig(beta=6.0), SupportConfig())
    policy = reweighted(behavior, likelihood, settings, slots=4)
    prompts = prompts_of(behavior)
    for prompt, result in zip(prompts, answers(policy, prompts, temperature), strict=True):
        ids = result.completion.token_ids
        for place, token in enumerate(ids):
            prefix = (*prompt.token_ids, *ids[:place])
            logits = weigh_by_likelihood(
                fresh(behavior.module, prefix),
                fresh(likelihood.module, prefix),
                settings.acting,
                support=settings.support,
            )
            expected = torch.log_softmax(logits / temperature, -1)[0, token]
            assert result.completion.logprobs[place] == pytest.approx(float(expected), abs=1e-3)


def fresh(module: ActorCritic, ids: tuple[int, ...]) -> torch.Tensor:
    with torch.no_grad():
        logits = module.model(input_ids=torch.tensor([ids])).logits[:, -1]
        return torch.log_softmax(module.speakable(logits), -1)


def test_more_beta_more_worth(pair: tuple[HuggingFacePolicy, Twin]) -> None:
    behavior, likelihood = pair
    policy = reweighted(
        behavior,
        likelihood,
        Settings(ActingConfig(beta=0.0), SupportConfig()),
        slots=4,
    )
    prompts = prompts_of(behavior)
    mild = answers(policy, prompts, 0.0)
    policy.act_as(replace(policy.acting, beta=50.0))
    strong = answers(policy, prompts, 0.0)
    assert [r.completion.token_ids for r in mild] != [r.completion.token_ids for r in strong]
    policy.submit(GenerationRequest(0, prompts[0], 0, 4, 0.0))
    with pytest.raises(RuntimeError, match="1 requests are unanswered"):
        policy.act_as(policy.acting)


def test_a_twin_shares_what_is_not_trained(pair: tuple[HuggingFacePolicy, Twin]) -> None:
    behavior = HuggingFacePolicy(make_tiny(WORDS, seed=0, size=SMALL), slots=1)
    frozen = next(iter(behavior.module.parameters()))
    frozen.requires_grad = False
    twin = twin_of(behavior)
    assert next(iter(twin.module.parameters())) is frozen
    pairs = zip(behavior.module.parameters(), twin.module.parameters(), strict=True)
    assert all((one is other) is (one is frozen) for one, other in pairs)
    # The copy remembers its own hidden states, not those of the first.
    assert fresh(twin.module, (7, 8)).equal(fresh(behavior.module, (7, 8)))
    twin.module.last_hidden()


def test_saved_and_loaded(pair: tuple[HuggingFacePolicy, Twin], tmp_path: Path) -> None:
    behavior, likelihood = pair
    settings = Settings(ActingConfig(beta=6.0), SupportConfig(floor=0.01))
    assert not is_reweighted(tmp_path)
    behavior.save(tmp_path / BEHAVIOR)
    settings.save(tmp_path)
    assert not is_reweighted(tmp_path)  # A first phase has no values yet: π_φ acts.
    alone = load_policy(str(tmp_path), slots=4)
    assert fresh(alone.module, (7, 8)).equal(fresh(behavior.module, (7, 8)))
    likelihood.save(tmp_path / LIKELIHOOD, behavior)
    assert is_reweighted(tmp_path)
    loaded = load_reweighted(tmp_path, slots=4)
    assert Settings.load(tmp_path) == settings
    assert loaded.acting == settings.acting
    policy = reweighted(behavior, likelihood, settings, slots=4)
    prompts = prompts_of(behavior)
    expected = [r.completion.token_ids for r in answers(policy, prompts, 1.0)]
    assert [r.completion.token_ids for r in answers(loaded, prompts, 1.0)] == expected


def test_saved_after_it_was_loaded_it_is_the_same_to_the_last_byte(
    pair: tuple[HuggingFacePolicy, Twin], tmp_path: Path
) -> None:
    behavior, likelihood = pair
    first, second = tmp_path / "first", tmp_path / "second"
    behavior.save(first / BEHAVIOR)
    likelihood.save(first / LIKELIHOOD, behavior)
    loaded = load_policy(str(first / BEHAVIOR), slots=4)
    load_twin(first / LIKELIHOOD, loaded).save(second / LIKELIHOOD, loaded)
    files = [path for path in (first / LIKELIHOOD).rglob("*") if path.is_file()]
    assert {"config.json", "tokenizer_config.json"} <= {path.name for path in files}
    for path in files:
        assert (second / path.relative_to(first)).read_bytes() == path.read_bytes(), path.name


def test_refused(pair: tuple[HuggingFacePolicy, Twin], tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"reweighted\.json: got no settings"):
        Settings.load(tmp_path)
    deeper = replace(SMALL, layers=3)
    HuggingFacePolicy(make_tiny(WORDS, seed=0, size=deeper), slots=1).save(tmp_path)
    with pytest.raises(PolicyError, match="got another architecture"):
        load_twin(tmp_path, pair[0])

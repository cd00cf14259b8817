"""The policy that acts: what the behaviour does, times exp(β · what it is worth).

Behaviour 0.5, 0.4, 0.1 and likelihood 0.1, 0.36, 0.1 have the ratios 0.2, 0.9 and 1.
"""

from dataclasses import replace
from math import exp
from pathlib import Path

import pytest
import torch
from torch import Tensor

from forethought.config_q_sft import ActingConfig, Extraction, SupportConfig
from forethought.errors import PolicyError
from forethought.policies.actor_critic import ActorCritic
from forethought.policies.contract import GenerationRequest, GenerationResult, Policy
from forethought.policies.huggingface import HuggingFacePolicy, load_policy
from forethought.policies.loading import BEHAVIOUR
from forethought.policies.reweighted import (
    LIKELIHOOD,
    Settings,
    Twin,
    is_reweighted,
    load_reweighted,
    load_twin,
    reweighted,
    twin_of,
    weigh_by_likelihood,
)
from forethought.policies.tiny import TinySize, make_tiny
from forethought.types import Message, Prompt

BEHAVIOUR_P, LIKELIHOOD_P = [0.5, 0.4, 0.1], [0.1, 0.36, 0.1]
WORDS = ["up", "down", "left", "right", "then", "stop"]
SMALL = TinySize(hidden_size=32, intermediate_size=64, layers=2, heads=2, vision_hidden_size=16)


@pytest.mark.parametrize(
    ("acting", "support", "weights"),
    [
        pytest.param(
            ActingConfig(beta=0.0), SupportConfig(), [0.5, 0.4, 0.1], id="beta 0: the behaviour"
        ),
        pytest.param(
            ActingConfig(beta=2.0),
            SupportConfig(),
            [0.5 * exp(0.4), 0.4 * exp(1.8), 0.1 * exp(2.0)],
            id="ratio",
        ),
        pytest.param(
            ActingConfig(beta=2.0, extraction="probability"),
            SupportConfig(),
            [0.5 * exp(0.2), 0.4 * exp(0.72), 0.1 * exp(0.2)],
            id="probability",
        ),
        pytest.param(
            ActingConfig(beta=2.0),
            SupportConfig(min_probability=0.2),
            [0.5 * exp(0.4), 0.4 * exp(1.8), 0.1],
            id="unsupported: no bonus",
        ),
        pytest.param(
            ActingConfig(beta=2.0),
            SupportConfig(floor=0.2),
            [0.5 * exp(0.4), 0.4 * exp(1.8), 0.1 * exp(1.0)],
            id="floored",
        ),
        pytest.param(
            ActingConfig(beta=2.0, top_p=0.6),
            SupportConfig(),
            # 0.75, 2.42 and 0.74 of 3.90: the second has 0.62 of the mass, enough alone.
            [0.0, 1.0, 0.0],
            id="nucleus of the acting policy",
        ),
    ],
)
def test_what_acts(acting: ActingConfig, support: SupportConfig, weights: list[float]) -> None:
    assert acts(BEHAVIOUR_P, LIKELIHOOD_P, acting, support) == pytest.approx(normalised(weights))


def test_a_ratio_above_one_counts_as_one() -> None:
    found = acts([0.9, 0.1, 0.0], [0.45, 0.5, 0.0], ActingConfig(beta=3.0), SupportConfig())
    assert found == pytest.approx(normalised([0.9 * exp(1.5), 0.1 * exp(3.0), 0.0]))


def acts(
    behaviour: list[float], likelihood: list[float], acting: ActingConfig, support: SupportConfig
) -> list[float]:
    """Probabilities of three tokens, and of the one that is left over."""
    likelihood_1V = torch.tensor([[*likelihood, 1 - sum(likelihood)]])
    logits_1V = weigh_by_likelihood(
        torch.tensor([[*behaviour, 0.0]]).log(),
        likelihood_1V.log(),
        look_nowhere,
        acting,
        support=support,
        dummy=None,
        ends=torch.tensor([3]),
    )
    return torch.softmax(logits_1V, -1)[0, :3].tolist()


def normalised(weights: list[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


# What the dummy (3) has behind each token, by row.
BEHIND = {0: [0.9, 0.2, 0.5], 1: [0.3, 0.5, 0.5], 2: [0.5, 0.5, 0.5], 3: [0.5, 0.5, 0.5]}


def look(ids_B: Tensor) -> Tensor:
    dummies = [BEHIND[token][row] for row, token in enumerate(ids_B.tolist())]
    return torch.tensor([[0.0, 1 - dummy, 0.0, dummy] for dummy in dummies]).log()


def look_nowhere(ids_B: Tensor) -> Tensor:
    raise AssertionError("nothing is to be asked")


def test_a_look_ahead() -> None:
    """Row 0 chooses between the worth 0.1 and 0.7 of what follows; in row 1 token 0, which leads
    to 0.8, may also be left for the end (2), whose ratio is 0.06 / 0.1; row 2 has no choice, and
    so nobody is asked: 0.45 / 0.9995."""
    behaviour_BV = torch.tensor([[0.6, 0.4, 0, 0], [0.9, 0, 0.1, 0], [0.9995, 5e-4, 0, 0]])
    likelihood_BV = torch.tensor([[0.3, 0.3, 0, 0.4], [0.2, 0, 0.06, 0.74], [0.45, 0, 0, 0.55]])
    logits_BV = weigh_by_likelihood(
        behaviour_BV.log(),
        likelihood_BV.log(),
        look,
        ActingConfig(beta=2.0, extraction="lookahead"),
        support=SupportConfig(),
        dummy=3,
        ends=torch.tensor([2]),
    )
    expected = [
        [0.6 * exp(0.2), 0.4 * exp(1.4), 0.0, 0.0],
        [0.9 * exp(1.6), 0.0, 0.1 * exp(1.2), 0.0],
        [0.9995 * exp(0.9 / 0.9995), 5e-4, 0.0, 0.0],
    ]
    for row, weights in zip(torch.softmax(logits_BV, -1).tolist(), expected, strict=True):
        assert row == pytest.approx(normalised(weights), abs=1e-6)


def test_no_look_ahead_without_a_dummy() -> None:
    ahead = ActingConfig(beta=2.0, extraction="lookahead")
    with pytest.raises(PolicyError, match=r"'lookahead', but .* leftover spread — expected ratio"):
        acts(BEHAVIOUR_P, LIKELIHOOD_P, ahead, SupportConfig())
    # β = 0 asks for no value.
    assert acts(BEHAVIOUR_P, LIKELIHOOD_P, replace(ahead, beta=0.0), SupportConfig()) == (
        pytest.approx(BEHAVIOUR_P)
    )


@pytest.fixture(scope="module")
def pair() -> tuple[HuggingFacePolicy, Twin]:
    """Two models of random, sharpened weights."""
    torch.set_num_threads(1)
    behaviour = HuggingFacePolicy(make_tiny([" ".join(WORDS)] * 3, seed=0, size=SMALL), slots=4)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in behaviour.module.parameters():
            if parameter.ndim > 1:
                parameter.mul_(1.5)
        likelihood = twin_of(behaviour)
        for parameter in likelihood.module.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return behaviour, likelihood


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
def test_beta_zero_is_the_behaviour_policy(
    pair: tuple[HuggingFacePolicy, Twin], temperature: float
) -> None:
    behaviour, likelihood = pair
    settings = Settings(ActingConfig(beta=0.0), SupportConfig(), dummy=None)
    policy = reweighted(behaviour, likelihood, settings, slots=4)
    prompts = prompts_of(behaviour)
    expected = answers(behaviour, prompts, temperature)
    found = answers(policy, prompts, temperature)
    for one, other in zip(expected, found, strict=True):
        assert one.completion.token_ids == other.completion.token_ids
        assert one.completion.logprobs == pytest.approx(other.completion.logprobs, abs=1e-5)


@pytest.mark.parametrize("extraction", ["ratio", "lookahead"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_sampled_log_probs_equal_fresh_forward_passes(
    pair: tuple[HuggingFacePolicy, Twin], temperature: float, extraction: Extraction
) -> None:
    """Through both caches, row by row, against each prefix by itself."""
    behaviour, likelihood = pair
    acting = ActingConfig(beta=6.0, extraction=extraction)
    settings = Settings(acting, SupportConfig(min_probability=0.02), dummy=behaviour.encoder.pad_id)
    policy = reweighted(behaviour, likelihood, settings, slots=4)
    prompts = prompts_of(behaviour)
    for prompt, result in zip(prompts, answers(policy, prompts, temperature), strict=True):
        ids = result.completion.token_ids
        for place, token in enumerate(ids):
            prefix = (*prompt.token_ids, *ids[:place])

            def look_afresh(ids_B: Tensor, prefix: tuple[int, ...] = prefix) -> Tensor:
                return fresh(likelihood.module, (*prefix, int(ids_B[0])))

            logits = weigh_by_likelihood(
                fresh(behaviour.module, prefix),
                fresh(likelihood.module, prefix),
                look_afresh,
                acting,
                support=settings.support,
                dummy=settings.dummy,
                ends=torch.tensor(sorted(behaviour.encoder.stop_ids)),
            )
            expected = torch.log_softmax(logits / temperature, -1)[0, token]
            assert result.completion.logprobs[place] == pytest.approx(float(expected), abs=1e-3)


def fresh(module: ActorCritic, ids: tuple[int, ...]) -> torch.Tensor:
    with torch.no_grad():
        logits = module.model(input_ids=torch.tensor([ids])).logits[:, -1]
        return torch.log_softmax(module.speakable(logits), -1)


def test_more_beta_more_worth(pair: tuple[HuggingFacePolicy, Twin]) -> None:
    behaviour, likelihood = pair
    policy = reweighted(
        behaviour,
        likelihood,
        Settings(ActingConfig(beta=0.0), SupportConfig(), dummy=None),
        slots=4,
    )
    prompts = prompts_of(behaviour)
    mild = answers(policy, prompts, 0.0)
    policy.act_as(replace(policy.acting, beta=50.0))
    strong = answers(policy, prompts, 0.0)
    assert [r.completion.token_ids for r in mild] != [r.completion.token_ids for r in strong]
    policy.submit(GenerationRequest(0, prompts[0], 0, 4, 0.0))
    with pytest.raises(RuntimeError, match="1 requests are unanswered"):
        policy.act_as(policy.acting)


def test_a_twin_shares_what_is_not_trained(pair: tuple[HuggingFacePolicy, Twin]) -> None:
    behaviour = HuggingFacePolicy(make_tiny(WORDS, seed=0, size=SMALL), slots=1)
    frozen = next(iter(behaviour.module.parameters()))
    frozen.requires_grad = False
    twin = twin_of(behaviour)
    assert next(iter(twin.module.parameters())) is frozen
    pairs = zip(behaviour.module.parameters(), twin.module.parameters(), strict=True)
    assert all((one is other) is (one is frozen) for one, other in pairs)
    # The copy remembers its own hidden states, not those of the first.
    assert fresh(twin.module, (7, 8)).equal(fresh(behaviour.module, (7, 8)))
    twin.module.last_hidden()


def test_saved_and_loaded(pair: tuple[HuggingFacePolicy, Twin], tmp_path: Path) -> None:
    behaviour, likelihood = pair
    settings = Settings(ActingConfig(beta=6.0), SupportConfig(floor=0.01), dummy=7)
    assert not is_reweighted(tmp_path)
    behaviour.save(tmp_path / BEHAVIOUR)
    settings.save(tmp_path)
    assert not is_reweighted(tmp_path)  # A first phase has no values yet: π_φ acts.
    alone = load_policy(str(tmp_path), slots=4)
    assert fresh(alone.module, (7, 8)).equal(fresh(behaviour.module, (7, 8)))
    likelihood.save(tmp_path / LIKELIHOOD, behaviour)
    assert is_reweighted(tmp_path)
    loaded = load_reweighted(tmp_path, slots=4)
    assert Settings.load(tmp_path) == settings
    assert loaded.acting == settings.acting
    policy = reweighted(behaviour, likelihood, settings, slots=4)
    prompts = prompts_of(behaviour)
    expected = [r.completion.token_ids for r in answers(policy, prompts, 1.0)]
    assert [r.completion.token_ids for r in answers(loaded, prompts, 1.0)] == expected


def test_refused(pair: tuple[HuggingFacePolicy, Twin], tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"reweighted\.json: got no settings"):
        Settings.load(tmp_path)
    deeper = replace(SMALL, layers=3)
    HuggingFacePolicy(make_tiny(WORDS, seed=0, size=deeper), slots=1).save(tmp_path)
    with pytest.raises(PolicyError, match="got another architecture"):
        load_twin(tmp_path, pair[0])

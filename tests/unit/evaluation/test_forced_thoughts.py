"""Actions behind forced thoughts are scored as the whole response would be."""

import numpy as np
import pytest
import torch

from forethought.evaluation.faithfulness import Forced
from forethought.evaluation.forced_thoughts import CLOSING, ActionScorer
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.batching import Example
from forethought.models.tiny import TinySize, make_tiny
from forethought.types import Message

SIZE = TinySize(hidden_size=16, intermediate_size=16, layers=1, heads=2, vision_hidden_size=8)
ACTIONS = ("go", "to", "desk 1", 'say "hm"')


@pytest.fixture(scope="module")
def policy() -> HuggingFacePolicy:
    """Random weights, sharpened, so that actions differ."""
    torch.manual_seed(0)
    texts = ['go to desk 1 and look, say "hm", "thoughts" "action" {}'] * 4
    made = HuggingFacePolicy(make_tiny(texts, seed=0, size=SIZE), slots=1)
    with torch.no_grad():
        for parameter in made.module.parameters():
            if parameter.ndim > 1:
                parameter.mul_(2)
    return made


def questions(policy: HuggingFacePolicy) -> list[Forced]:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (64, 64, 3)).astype(np.uint8)
    seen = policy.prompt([Message("user", "where?", image)])
    read = policy.prompt([Message("user", "go where? " * 9)])
    openings = ['{\n"action": "', '{\n"thoughts": "look, I go to desk 1",\n"action": "']
    return [
        Forced(prompt, opening, ACTIONS[:count])
        for prompt, count in ((seen, 4), (read, 2))
        for opening in openings
    ]


def by_hand(policy: HuggingFacePolicy, question: Forced) -> list[float]:
    """Each whole response, scored alone after the prompt."""
    escaped = [action.replace('"', '\\"') for action in question.actions]
    totals = [
        policy.score(
            [
                Example(
                    question.prompt,
                    policy.encoder.tokenize_response(f"{question.opening}{action}{CLOSING}"),
                )
            ],
            temperature=1.0,
        ).logprobs_BT.sum()
        for action in escaped
    ]
    return torch.softmax(torch.stack(totals).double(), dim=0).tolist()


@pytest.mark.parametrize("max_tokens", [1, 200, 100_000])
def test_probabilities_are_those_of_whole_responses(
    policy: HuggingFacePolicy, max_tokens: int
) -> None:
    asked = questions(policy)
    found = ActionScorer(policy, max_tokens=max_tokens)(asked)
    for question, probabilities in zip(asked, found, strict=True):
        assert probabilities == pytest.approx(by_hand(policy, question), abs=1e-5)
        assert sum(probabilities) == pytest.approx(1)
    assert max(found[0]) - min(found[0]) > 0.05  # or equal numbers would prove nothing


def test_thoughts_and_prompt_matter(policy: HuggingFacePolicy) -> None:
    asked = questions(policy)
    found = [np.array(one[:2]) for one in ActionScorer(policy, max_tokens=4096)(asked)]
    assert np.abs(found[0] - found[1]).max() > 1e-4
    assert np.abs(found[2] - found[3]).max() > 1e-4


def test_a_single_action_is_certain(policy: HuggingFacePolicy) -> None:
    [question, *_] = questions(policy)
    only = question._replace(actions=("look",))
    assert ActionScorer(policy, max_tokens=4096)([only]) == [(1.0,)]

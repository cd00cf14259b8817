"""An episode of turns is one sequence: each prompt goes on where the last answer ended."""

import numpy as np
import pytest

from forethought.environments.contract import ExpertAction, WithDataPolicy
from forethought.environments.registry import make_environment
from forethought.models.encoding import Encoder
from forethought.models.tiny import make_tiny
from forethought.prompts.prompters import make_prompter
from forethought.prompts.responses import write_response

ENVIRONMENTS = ["Wordle", "TwentyQuestions"]
ODD = ['a "quoted" word', "two\nlines", "<|end|>", "\\", "é ☃", "> no reply"]
"""Answers that could be mistaken for something else on their way through the transcript."""


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    said = '{\n"action": "is it c r a n e"\n} b y g Yes. No. not in the list'
    model, processor, _ = make_tiny([said] * 4, seed=0)
    return Encoder(model, processor)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_prompt_begins_with_the_last_one_and_its_answer(name: str, encoder: Encoder) -> None:
    environment = make_environment(name)
    assert isinstance(environment, WithDataPolicy)
    prompter = make_prompter(environment, response_format="action_only")
    for seed in range(5):
        observation = environment.reset(seed)
        player = environment.data_policy(0.5, np.random.default_rng(seed))
        over, so_far = False, ()
        while not over:
            prompt = encoder.encode(prompter.messages(observation)).token_ids
            assert prompt[: len(so_far)] == so_far
            expert_action = player()
            so_far = (
                *prompt,
                *encoder.tokenize_response(write_response(expert_action, "action_only")),
            )
            _, terminated, truncated = environment.step(expert_action.action)
            over = terminated or truncated
            observation = environment.observation()
        last = encoder.encode(prompter.messages(observation)).token_ids
        assert last[: len(so_far)] == so_far


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_any_answer_comes_back_as_it_was_given(name: str, odd: str, encoder: Encoder) -> None:
    environment = make_environment(name)
    prompter = make_prompter(environment, response_format="action_only")
    first = encoder.encode(prompter.messages(environment.reset(0))).token_ids
    environment.step(odd)
    answer = encoder.tokenize_response(write_response(ExpertAction(odd, ()), "action_only"))
    second = encoder.encode(prompter.messages(environment.observation())).token_ids
    assert second[: len(first) + len(answer)] == (*first, *answer)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_roles_alternate(name: str) -> None:
    environment = make_environment(name)
    environment.reset(0)
    for action in ("a", "b"):
        environment.step(action)
    messages = make_prompter(environment).messages(environment.observation())
    assert [message.role for message in messages] == ["user", "assistant"] * 2 + ["user"]
    told = [line for message in messages[1:] for line in message.text.split("\n")]
    text = environment.observation().text or ""
    assert [line for line in told if line in text.split("\n")] == text.split("\n")[1::2]

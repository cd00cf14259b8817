"""Actions scored behind thoughts that are put into the policy's mouth."""

import json
from collections.abc import Sequence
from itertools import takewhile

import torch

from forethought.evaluation.faithfulness import Forced
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.batching import Example, build_batch, plan_rows
from forethought.types import Prompt

CLOSING = '"\n}'
"""What follows the action's value, as `write_response` has it."""


class ActionScorer:
    """p(action | prompt, thoughts) among the actions of a state, by the scoring pass."""

    def __init__(self, policy: HuggingFacePolicy, *, max_tokens: int) -> None:
        """
        Args:
            max_tokens: of one forward pass, padding included.
        """
        self._policy = policy
        self._max_tokens = max_tokens

    def __call__(self, questions: Sequence[Forced]) -> list[tuple[float, ...]]:
        """For each question the probabilities of its actions, which sum to 1.

        The whole response is tokenized with each action in it, as supervised fine-tuning
        tokenizes. What all of them begin with joins the prompt and is computed once.
        """
        examples = [
            example for question in questions for example in _examples(question, self._policy)
        ]
        logprobs = self._score(examples)
        found: list[tuple[float, ...]] = []
        start = 0
        for question in questions:
            stop = start + len(question.actions)
            scores_A = torch.tensor(logprobs[start:stop], dtype=torch.float64)
            found.append(tuple(torch.softmax(scores_A, dim=0).tolist()))
            start = stop
        return found

    @torch.inference_mode()
    def _score(self, examples: Sequence[Example]) -> list[float]:
        """Log-prob of each completion, nats."""
        module, encoder = self._policy.module, self._policy.encoder
        module.eval()
        logprobs = [0.0] * len(examples)
        for rows in plan_rows(examples, self._max_tokens):
            batch = build_batch([[examples[index] for index in row] for row in rows], encoder)
            sums_B = module(batch.to(self._policy.device)).logprobs_BT.sum(dim=1).tolist()
            for index, total in zip((i for row in rows for i in row), sums_B, strict=True):
                logprobs[index] = total
        return logprobs


def _examples(question: Forced, policy: HuggingFacePolicy) -> list[Example]:
    responses = [
        policy.encoder.tokenize_response(f"{question.opening}{_in_json(action)}{CLOSING}")
        for action in question.actions
    ]
    shared = sum(1 for _ in takewhile(_are_equal, zip(*responses, strict=False)))
    shared = min(shared, min(map(len, responses)) - 1)  # a single action has a token left, too
    prompt = Prompt(question.prompt.messages, (*question.prompt.token_ids, *responses[0][:shared]))
    return [Example(prompt, response[shared:]) for response in responses]


def _are_equal(tokens: tuple[int, ...]) -> bool:
    return len(set(tokens)) == 1


def _in_json(action: str) -> str:
    """As the inside of a JSON string."""
    return json.dumps(action)[1:-1]

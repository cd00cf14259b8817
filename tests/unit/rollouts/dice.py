"""A policy that throws dice."""

from collections.abc import Mapping, Sequence

import numpy as np

from forethought.environments.contract import ExpertAction
from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.prompts.responses import write_response
from forethought.types import Completion, FinishReason, Message, Prompt


class Dice:
    """Answers by the request's own randomness: each action as often as its share."""

    version = 0

    def __init__(self, shares: Mapping[str, float]) -> None:
        self._shares = shares
        self._asked: list[GenerationRequest] = []

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        return Prompt(messages=tuple(messages), token_ids=(1,))

    def submit(self, request: GenerationRequest) -> None:
        self._asked.append(request)

    def advance(self) -> list[GenerationResult]:
        """One at a time, the last that asked first."""
        request = self._asked.pop()
        generator = np.random.Generator(np.random.Philox(key=request.seed))
        action = str(generator.choice(list(self._shares), p=list(self._shares.values())))
        text = write_response(ExpertAction(action, ()), "action_only")
        completion = Completion((), (), (), text, FinishReason.STOP, temperature=1.0)
        return [GenerationResult(request.key, completion, None)]

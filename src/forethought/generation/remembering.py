"""Who takes the most likely token says the same to the same prompt: it is asked once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from forethought.generation.contract import GenerationRequest, GenerationResult, Policy
from forethought.types import Message, Prompt


class _Question(NamedTuple):
    """All that a greedy answer depends on."""

    prompt: bytes
    said: tuple[tuple[str, str], ...]
    """Roles and texts: prompts for an endpoint have no token ids."""
    max_new_tokens: int
    choices: tuple[str, ...] | None
    stop: tuple[str, ...]


class RememberingPolicy:
    """A policy that answers a greedy request once, however often it is made.

    Small environments, and agents that are stuck, meet the same prompts again and again. Samples
    are drawn again each time. The weights must stay as they are.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._answered: dict[_Question, GenerationResult] = {}
        self._asked: dict[int, _Question] = {}
        """By the key of the request that was handed on."""
        self._waiting: dict[_Question, list[int]] = {}
        """Keys of further requests for an answer that is being written."""
        self._ready: list[GenerationResult] = []

    @property
    def version(self) -> int:
        return self._policy.version

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        return self._policy.prompt(messages)

    def submit(self, request: GenerationRequest) -> None:
        if request.temperature > 0:
            self._policy.submit(request)
            return
        prompt = request.prompt
        said = tuple((message.role, message.text) for message in prompt.messages)
        question = _Question(
            prompt.key, said, request.max_new_tokens, request.choices, request.stop
        )
        if question in self._answered:
            self._ready.append(replace(self._answered[question], key=request.key))
        elif question in self._waiting:
            self._waiting[question].append(request.key)
        else:
            self._asked[request.key], self._waiting[question] = question, []
            self._policy.submit(request)

    def advance(self) -> list[GenerationResult]:
        # Those who know their answer go first: so more come to wait, and are answered together.
        if not self._ready:
            for result in self._policy.advance():
                self._ready.append(result)
                question = self._asked.pop(result.key, None)
                if question is not None:
                    self._answered[question] = result
                    keys = self._waiting.pop(question)
                    self._ready.extend(replace(result, key=key) for key in keys)
        ready, self._ready = self._ready, []
        return ready

"""What a prompt tells of the steps before, around any world's own wording."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from forethought.configs.parts import AnswerForm, History
from forethought.environments.contract import ResolveAction
from forethought.environments.wording import Past, Prompter, Summarize
from forethought.prompts.answers import parse_answer
from forethought.prompts.strict_format import response_fields
from forethought.types import Completion, Message, Observation, ParsedAction


@dataclass(frozen=True)
class HistoryPrompter:
    """A world's prompter, told of the past.

    - `window`: the texts and actions of the last steps stand above the prompt's last message.
    - `summary`: the world's summary takes the place of the observation, before it is worded.
    """

    inner: Prompter
    history: History = "none"
    steps: int = 2
    """How many `window` tells."""
    tells_invalid: bool = False
    """Whether a line says that the last answer ended in no action and that nothing happened."""
    memory: Summarize | None = None
    """The world's summary, for `summary`."""
    answer_form: AnswerForm = "strict"
    """How answers to these prompts are read (`parse_answer`)."""
    resolve_action: ResolveAction | None = None
    """What else may be written for an action that is listed; the environment's."""

    @property
    def response_fields(self) -> tuple[str, ...]:
        return response_fields(self.inner)

    def messages(self, observation: Observation, past: Sequence[Past] = ()) -> tuple[Message, ...]:
        """The world's messages, with what is told of the steps before.

        Args:
            observation: the present one.
            past: the episode's steps so far, oldest first.
        """
        *earlier, last = self.inner.messages(self._remembered(observation, past))
        lines = self._lines(past)
        return (*earlier, replace(last, text="\n".join([*lines, last.text])))

    def parse(self, completion: Completion, choices: Sequence[str] | None) -> ParsedAction:
        """The action in an answer to these prompts; `choices` as in `parse_answer`."""
        return parse_answer(
            completion, choices, form=self.answer_form, resolve_action=self.resolve_action
        )

    def state_key(self, observation: Observation, past: Sequence[Past] = ()) -> str:
        """Equal exactly when the state is, and what the prompt tells of the past.

        Answers to prompts that tell of different pasts are not answers to one question.
        """
        told = self._lines(past)
        if self.memory is not None:
            told.append(self._remembered(observation, past).text or "")
        if not told:
            return observation.state_key
        digest = blake2b("\0".join(told).encode("utf-8", "surrogatepass"), digest_size=12)
        return f"{observation.state_key} after {digest.hexdigest()}"

    def _remembered(self, observation: Observation, past: Sequence[Past]) -> Observation:
        return observation if self.memory is None else self.memory(past, observation)

    def _lines(self, past: Sequence[Past]) -> list[str]:
        lines: list[str] = []
        if self.history == "window" and past:
            lines.append("Before:")
            for step in past[-self.steps :]:
                seen = step.observation.text
                lines += [*([] if seen is None else [seen]), f"> {step.action}"]
            lines.append("Now:")
        if self.tells_invalid and past and not past[-1].is_valid:
            lines.append(_refusal(past[-1].action))
        return lines


def with_history(prompter: Prompter) -> HistoryPrompter:
    """A prompter that may be told of the past; one that was made without it is not interested."""
    return prompter if isinstance(prompter, HistoryPrompter) else HistoryPrompter(prompter)


def behind(observation: Observation, action: str, choices: Sequence[str] | None) -> Past:
    """A step that was just taken, as prompts remember it.

    Args:
        observation: what the agent saw.
        action: what it did, or tried.
        choices: what it could have done; None: any text.
    """
    is_valid = bool(action) and (choices is None or action in choices)
    return Past(replace(observation, image=None), action, is_valid)


def _refusal(tried: str) -> str:
    if not tried:
        return "Your last answer did not end in an action. Nothing happened."
    return f"Your last action is not possible: {tried}. Nothing happened."

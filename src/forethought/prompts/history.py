"""The steps before in a prompt, around any environment's own wording."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from forethought.configs.parts import History, ResponseForm
from forethought.environments.contract import Past, Prompter, ResolveAction, Summarize
from forethought.prompts.responses import parse_response, response_fields
from forethought.types import Completion, Message, Observation, ParsedAction


@dataclass(frozen=True)
class HistoryPrompter:
    """An environment's prompter, with the steps before in its messages.

    - `window`: the texts and actions of the last steps come above the prompt's last message.
    - `summary`: the environment's summary replaces the observation, before it is worded.
    """

    inner: Prompter
    history: History = "none"
    steps: int = 2
    """Length of the `window`."""
    invalid_action_feedback: bool = False
    """Whether a line says that the last response ended in no action and that nothing happened."""
    summarize: Summarize | None = None
    """The environment's summary, for `summary`."""
    answer_form: ResponseForm = "strict"
    """How responses to these prompts are parsed (`parse_response`)."""
    resolve_action: ResolveAction | None = None
    """The environment's reading of other texts for an action that it lists."""

    @property
    def response_fields(self) -> tuple[str, ...]:
        """The JSON fields that the inner prompter asks for, `action` last."""
        return response_fields(self.inner)

    def messages(self, observation: Observation, past: Sequence[Past] = ()) -> tuple[Message, ...]:
        """The inner prompter's messages, the last one with the history above it.

        Args:
            observation: the present one.
            past: the episode's steps so far, oldest first.
        """
        *earlier, last = self.inner.messages(self._summarized(observation, past))
        lines = self._lines(past)
        return (*earlier, replace(last, text="\n".join([*lines, last.text])))

    def parse(self, completion: Completion, choices: Sequence[str] | None) -> ParsedAction:
        """The action in a response to these prompts; `choices` as in `parse_response`."""
        return parse_response(
            completion, choices, form=self.answer_form, resolve_action=self.resolve_action
        )

    def state_key(self, observation: Observation, past: Sequence[Past] = ()) -> str:
        """A key that is equal exactly when the state is, and the history in the prompt.

        Responses to prompts with different histories do not answer one question.
        """
        included = self._lines(past)
        if self.summarize is not None:
            included.append(self._summarized(observation, past).text or "")
        if not included:
            return observation.state_key
        digest = blake2b("\0".join(included).encode("utf-8", "surrogatepass"), digest_size=12)
        return f"{observation.state_key} after {digest.hexdigest()}"

    def _summarized(self, observation: Observation, past: Sequence[Past]) -> Observation:
        return observation if self.summarize is None else self.summarize(past, observation)

    def _lines(self, past: Sequence[Past]) -> list[str]:
        lines: list[str] = []
        if self.history == "window" and past:
            lines.append("Before:")
            for step in past[-self.steps :]:
                seen = step.observation.text
                lines += [*([] if seen is None else [seen]), f"> {step.action}"]
            lines.append("Now:")
        if self.invalid_action_feedback and past and not past[-1].is_valid:
            lines.append(_feedback(past[-1].action))
        return lines


def with_history(prompter: Prompter) -> HistoryPrompter:
    """The prompter as one that takes the past; one that was made without ignores it."""
    return prompter if isinstance(prompter, HistoryPrompter) else HistoryPrompter(prompter)


def past_step(observation: Observation, action: str, choices: Sequence[str] | None) -> Past:
    """A step that was just taken, as prompts keep it: without its image.

    Args:
        observation: what the agent saw.
        action: what it did, or tried.
        choices: what it could have done; None: any text.
    """
    is_valid = bool(action) and (choices is None or action in choices)
    return Past(replace(observation, image=None), action, is_valid)


def _feedback(tried: str) -> str:
    if not tried:
        return "Your last answer did not end in an action. Nothing happened."
    return f"Your last action is not possible: {tried}. Nothing happened."

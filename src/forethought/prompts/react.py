"""ReAct prompts: reasoning and acting in turn, for models that were not trained on our form.

Yao et al. 2023, "ReAct: Synergizing Reasoning and Acting in Language Models": the model is
shown episodes in which a thought in free words comes before each action, and continues so.
What is ours: the action is written as `{"action": "…"}`, which is parsed like any response; and
the steps before come as in the environment's own prompt, or as `prompt.history` says, which is
without the thoughts of the present episode.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from forethought.environments.contract import ExpertAction, Prompter
from forethought.types import Message, Observation

INSTRUCTIONS = (
    "You act in a world, one action per answer. Before each action, reason about it: what you "
    "see, what it means for the goal, what you have tried, and what to do next.\n"
    "Write every answer in this form, the action last and on a line of its own:\n"
    "Thought: your reasoning, in a few sentences\n"
    'Action: {"action": "the action, exactly as it may be written"}'
)


@dataclass(frozen=True)
class ReActPrompter:
    """Instructions, example episodes, and then the messages of the environment's own prompter."""

    wording: Prompter
    """The environment's prompter, asking for the action alone."""
    examples: tuple[Message, ...] = ()
    """Conversations of whole episodes, each response in the form that is asked for."""

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        """A system message, the examples, and the environment's messages."""
        own = self.wording.messages(observation)
        return (Message("system", INSTRUCTIONS), *self.examples, *own)


def write_thought_and_action(expert_action: ExpertAction) -> str:
    """An expert's action as "Thought: …" and "Action: …", on two lines."""
    thoughts = " ".join(_in_words(name, value) for name, value in expert_action.fields)
    action = f'Action: {{"action": {json.dumps(expert_action.action)}}}'
    return f"Thought: {thoughts}\n{action}" if thoughts else action


def follow_on(before: Sequence[Message], now: Sequence[Message]) -> tuple[Message, ...]:
    """The part of a prompt that is new, where it repeats the one before it and the response
    to that; all of it where it does not.

    Args:
        before: the messages of the step before; none before the first.
    """
    repeats = 0 < len(before) < len(now) and all(
        (old.role, old.text) == (new.role, new.text) for old, new in zip(before, now, strict=False)
    )
    if not repeats:
        return tuple(now)
    rest = now[len(before) :]
    return tuple(rest[1:] if rest[0].role == "assistant" else rest)


def _in_words(name: str, value: str) -> str:
    """A field of an expert's response; thoughts come without their name."""
    if name != "thoughts":
        return f"{name}: {value}."
    try:
        text: object = json.loads(value)
    except ValueError:
        return value
    return text if isinstance(text, str) else value

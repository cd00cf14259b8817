"""A model's own chat template: what it demands of a conversation, and the text that it writes.

Templates disagree about nearly everything: whether a message is a string or a list of parts,
whether there is a system role, whether two messages of one role may follow each other, whether
the prompt ends inside a thinking block. None of it is declared. So each template is asked: short
conversations with known words are rendered, and the words looked for in the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from forethought.errors import PolicyError
from forethought.models.template_sandbox import BoundedEnvironment, TemplateLimitError
from forethought.types import Message, Role

BLOCKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
)
"""How a thinking block opens and closes."""
SWITCHES: Mapping[str, object] = {"enable_thinking": False, "thinking": False, "reasoning": False}
"""What templates read to leave thinking out."""


class Turn(NamedTuple):
    """One turn as the template gets it."""

    role: Role
    parts: tuple[str | None, ...]
    """Texts; None for an image."""


@dataclass(frozen=True)
class TemplateFacts:
    """What a template demands, and what is done about it."""

    content: Literal["string", "parts"] = "string"
    """What it takes for the content of a message."""
    has_system_role: bool = True
    """Otherwise a system text is put before the next user message, a blank line between."""
    takes_equal_roles: bool = True
    """Otherwise messages of one role in a row become one, a blank line between."""
    needs_tool_list: bool = False
    """It cannot do without a list of tools, so it gets an empty one."""
    thinking: Literal["none", "switched off", "closed"] = "none"
    """Whether the prompt would end inside a thinking block. Thoughts are part of our responses, so
    the block is left out as the template itself does it, or else closed at once."""
    closing: str = ""
    """Written after the prompt: the end of a thinking block."""
    keeps_history: bool = True
    """A prompt begins with the one before it and the response to that, as text."""


class ChatTemplate:
    """Renders conversations by one template."""

    def __init__(self, source: str, tokens: Mapping[str, Any], *, prefers_parts: bool) -> None:
        """
        Args:
            source: of the template, in Jinja.
            tokens: the tokenizer's special tokens by name, which templates write.
            prefers_parts: where it takes both strings and parts: of a model that reads images.

        Raises:
            PolicyError: it writes no user message, however that is given.
        """
        self._tokens = dict(tokens)
        self._environment = BoundedEnvironment()
        try:
            self._compiled, self.words = self._environment.read(source)
        except Exception as error:  # A template is a stranger's program: it may raise anything.
            raise PolicyError(
                f"the model's chat template cannot be read: {_one_line(error)} — correct "
                "chat_template.jinja in the model's folder"
            ) from error
        self.facts = _facts(self, prefers_parts)

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt as text: all messages, and the beginning of the response.

        Raises:
            PolicyError: the template refuses the conversation.
        """
        turns = [Turn(m.role, (m.text,) if m.image is None else (None, m.text)) for m in messages]
        try:
            return self.write(turns, self.facts)
        except _RefusalError as complaint:
            roles = ", ".join(message.role for message in messages)
            raise PolicyError(
                f"the model's chat template refuses a conversation of {roles}: {complaint} — "
                "choose another prompt, or another model"
            ) from complaint

    def write(self, turns: Sequence[Turn], facts: TemplateFacts) -> str:
        """The same, as if `facts` were known.

        Raises:
            PolicyError: the template does not end, or writes too much.
        """
        turns = turns if facts.has_system_role else _fold_system(turns)
        turns = turns if facts.takes_equal_roles else _join_equal_roles(turns)
        messages = [{"role": t.role, "content": _content(t, facts)} for t in turns]
        switches = SWITCHES if facts.thinking == "switched off" else {}
        tools: list[object] | None = [] if facts.needs_tool_list else None
        settings = {"tools": tools, "documents": None, **self._tokens, **switches}
        given = {"messages": messages, "add_generation_prompt": True, **settings}
        try:
            text = self._environment.write(self._compiled, given)
        except TemplateLimitError as error:
            raise PolicyError(
                f"the model's chat template goes beyond its bounds: {error} — correct "
                "chat_template.jinja in the model's folder"
            ) from error
        except Exception as error:  # As above.
            raise _RefusalError(_one_line(error)) from error
        return text + facts.closing


class _RefusalError(Exception):
    """Why a template could not be rendered, in one line."""


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:299] + "…"


# --- what a template is given --------------------------------------------------------------


def _content(turn: Turn, facts: TemplateFacts) -> str | list[dict[str, str]]:
    if facts.content == "string":
        return "".join(part for part in turn.parts if part is not None)
    return [
        {"type": "image"} if part is None else {"type": "text", "text": part} for part in turn.parts
    ]


def _fold_system(turns: Sequence[Turn]) -> list[Turn]:
    """System texts become part of the user message that follows, or such a message themselves."""
    folded: list[Turn] = []
    waiting: list[Turn] = []
    for turn in turns:
        if turn.role == "system":
            waiting.append(turn)
        elif turn.role == "user":
            folded.append(_join([*waiting, turn]))
            waiting = []
        else:
            folded.append(turn)
    return [*folded, *([_join([t._replace(role="user") for t in waiting])] if waiting else [])]


def _join_equal_roles(turns: Sequence[Turn]) -> list[Turn]:
    joined: list[Turn] = []
    for turn in turns:
        if joined and joined[-1].role == turn.role:
            joined[-1] = _join([joined[-1], turn])
        else:
            joined.append(turn)
    return joined


def _join(turns: Sequence[Turn]) -> Turn:
    """One turn of the last one's role, with a blank line before each further text."""
    parts: list[str | None] = []
    for turn in turns:
        said = any(part is not None for part in parts)
        for part in turn.parts:
            parts.append(f"\n\n{part}" if part is not None and said else part)
            said = said and part is None
    return Turn(turns[-1].role, tuple(parts))


# --- what is found out -----------------------------------------------------------------------

# Quotation marks and a line break: a list that is printed rather than read would escape them.
SYSTEM, FIRST, SECOND, ANSWER = (f"\"{word}\"\nis '{word}'" for word in ("sys", "one", "two", "an"))
USER = Turn("user", (FIRST,))


def _facts(template: ChatTemplate, prefers_parts: bool) -> TemplateFacts:
    forms: list[Literal["string", "parts"]] = ["string", "parts"]
    if prefers_parts:
        forms.reverse()
    ways = [TemplateFacts(content=form, needs_tool_list=t) for t in (False, True) for form in forms]
    facts = next((way for way in ways if _carries(template, [USER], way)), None)
    if facts is None:
        raise PolicyError(
            "the model's chat template writes no user message, neither from a string nor from "
            f"parts: {_complaint(template, [USER], ways[0])} — correct chat_template.jinja in the "
            "model's folder"
        )
    facts = _with_thinking(template, facts)
    system = Turn("system", (SYSTEM,))
    if not _carries(template, [system, USER], facts):
        facts = replace(facts, has_system_role=False)
    if not _carries(template, [USER, Turn("user", (SECOND,))], facts):
        facts = replace(facts, takes_equal_roles=False)
    if facts.has_system_role and not _keeps_history(template, facts, [system]):
        # Some put the system text into the last user message, which is another one every turn.
        folded = replace(facts, has_system_role=False)
        facts = folded if _keeps_history(template, folded, [system]) else facts
    return replace(facts, keeps_history=_keeps_history(template, facts, []))


def _carries(template: ChatTemplate, turns: Sequence[Turn], facts: TemplateFacts) -> bool:
    """Whether all texts come through as they are."""
    try:
        text = template.write(turns, facts)
    except _RefusalError:
        return False
    return all(part in text for turn in turns for part in turn.parts if part is not None)


def _complaint(template: ChatTemplate, turns: Sequence[Turn], facts: TemplateFacts) -> str:
    try:
        template.write(turns, facts)
    except _RefusalError as complaint:
        return str(complaint)
    return "its words are missing from the prompt"


def _with_thinking(template: ChatTemplate, facts: TemplateFacts) -> TemplateFacts:
    closing = _missing_end(template.write([USER], facts))
    if not closing:
        return facts
    switched = replace(facts, thinking="switched off")
    if _carries(template, [USER], switched) and not _missing_end(template.write([USER], switched)):
        return switched
    return replace(facts, thinking="closed", closing=closing)


def _missing_end(text: str) -> str:
    """What closes a thinking block that a prompt leaves open; nothing where it leaves none."""
    opened = text.rpartition(FIRST)[2]
    for start, end in BLOCKS:
        if opened.rfind(start) > opened.rfind(end):
            return f"\n{end}\n\n"
    return ""


def _keeps_history(template: ChatTemplate, facts: TemplateFacts, before: Sequence[Turn]) -> bool:
    answer, more = Turn("assistant", (ANSWER,)), Turn("user", (SECOND,))
    try:
        first = template.write([*before, USER], facts)
        return template.write([*before, USER, answer, more], facts).startswith(first + ANSWER)
    except _RefusalError:
        return False

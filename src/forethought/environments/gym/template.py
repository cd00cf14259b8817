"""The prompt of a Gymnasium environment: a template that the user may give."""

import re
from dataclasses import dataclass
from pathlib import Path

from forethought.errors import ConfigError
from forethought.types import Message, Observation

DEFAULT = "{goal}\n{text}\nActions: {actions}\nAnswer as JSON: {fields}"
PLACES = ("goal", "text", "actions", "fields")
_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class TemplatePrompter:
    """The template, with what it names filled in."""

    template: str
    actions: tuple[str, ...] | None
    fields: tuple[str, ...]

    @property
    def response_fields(self) -> tuple[str, ...]:
        """The JSON fields that the prompt asks for, `action` last."""
        return self.fields

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        """One message of the user, with the image if there is one."""
        choices = observation.admissible_actions or self.actions
        filled = {
            "goal": observation.goal,
            "text": observation.text or "",
            "actions": "any text" if choices is None else ", ".join(choices),
            "fields": "{" + ", ".join(f'"{name}"' for name in self.fields) + "}",
        }
        # What is filled in may hold braces of its own, so all places are filled at once.
        text = _PLACE.sub(lambda place: filled[place[1]], self.template)
        lines = [line for line in text.split("\n") if line or observation.text is not None]
        return (Message("user", "\n".join(lines), observation.image),)


def read_template(text: str) -> str:
    """A template, or the text of the file that is named; the default where nothing is.

    Raises:
        ConfigError: a place that nothing is known for, or no file of that name.
    """
    if not text:
        return DEFAULT
    if "{" not in text:
        try:
            text = Path(text).read_text("utf-8").rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"template is {text!r} — expected a text with {{text}} in it, or a file that "
                f"holds one: {error}"
            ) from None
    strangers = [name for name in _PLACE.findall(text) if name not in PLACES]
    if strangers:
        raise ConfigError(
            f"template has {{{strangers[0]}}} — expected {', '.join(f'{{{p}}}' for p in PLACES)}"
        )
    return text

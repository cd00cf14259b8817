"""What the agent is told in ALFWorld.

Two wordings. `paper` is InteractiveCOT's (Fig. 3; RL4VLM's, Fig. 17, with reflections);
`short` says the same in a fraction of the tokens, with the commands grouped by verb. Where
the observation has no text, only the picture tells what is there: of the commands, the
things' names are left out then.
"""

import re
from dataclasses import dataclass

from forethought.configs.parts import AnswerFormat
from forethought.environments.alfworld.commands import group_commands
from forethought.environments.alfworld.summary import FIRST
from forethought.environments.alfworld.tasks import static_receptacles
from forethought.environments.wording import Wording
from forethought.types import Message, Observation

_NAME = re.compile(r"([a-z]+) \d+")

_THOUGHTS = (
    '"thoughts": "{first describe what do you see in the image using the text description, '
    'then carefully think about which action to complete the task.}"'
)
_REFLECTIONS = (
    '"reflections": "{reflect on your historical trajectory and carefully think about which '
    'action to complete the task.}"'
)
_ACTION = '"action": "{an admissible action}"'


@dataclass(frozen=True)
class ALFWorldPrompter:
    """Goal, what is seen or remembered, commands, and the form of the answer."""

    answer_format: AnswerFormat
    wording: Wording

    @property
    def response_fields(self) -> tuple[str, ...]:
        thinks = self.answer_format == "thoughts"
        return ("thoughts", "reflections", "action") if thinks else ("action",)

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        word = _paper if self.wording == "paper" else _short
        return (Message("user", word(observation, self.answer_format), observation.image),)


def _short(observation: Observation, answer_format: AnswerFormat) -> str:
    text = observation.text
    lines = [f"goal: {observation.goal}"]
    if text is not None and text.startswith(FIRST):
        lines.append(text)  # the memory, which has the commands in it
    else:
        lines += [] if text is None else [_scene(text)]
        lines += group_commands(_shown_commands(observation))
    form = "thoughts, reflections, action" if answer_format == "thoughts" else "action"
    return "\n".join([*lines, f"JSON: {form}"])


def _paper(observation: Observation, answer_format: AnswerFormat) -> str:
    text = observation.text
    parts = ["Your are an expert in the ALFRED Embodied Environment."]
    parts.append(f"Your task is to {observation.goal}.")
    if text is not None:
        parts.append(f"You are also given the following text description of the scene: ['{text}'].")
    if text is None or not text.startswith(FIRST):
        actions = ", ".join(f"'{command}'" for command in _shown_commands(observation))
        parts.append(f"Your admissible actions of the current situation are: [{actions}].")
    fields = [_THOUGHTS, _REFLECTIONS, _ACTION] if answer_format == "thoughts" else [_ACTION]
    parts.append("Your response should be a valid json file in the following format:")
    form = "{\n" + ",\n".join(fields) + "\n}"
    if answer_format == "thoughts":
        form += (
            "\nYour actions should be based solely on the analysis provided by your thoughts!"
            "\nYour output need to be in 60 words!"
        )
    return " ".join(parts) + "\n" + form


def _scene(text: str) -> str:
    """The introduction less its greeting, the task, which stands in the first line, and the
    receptacles, all of which one can go to."""
    text = text.replace("-= Welcome to TextWorld, ALFRED! =-", "")
    text = re.sub(r" Looking quickly around you, you see [^.]*\.", "", text)
    return re.sub(r"Your task is to: .*", "", text, flags=re.DOTALL).strip()


def _shown_commands(observation: Observation) -> tuple[str, ...]:
    """The admissible commands; without a text, a thing at hand is only "?" in them."""
    commands = observation.admissible_actions or ()
    if observation.text is not None:
        return commands
    return tuple(dict.fromkeys(_without_things(command) for command in commands))


def _without_things(command: str) -> str:
    places = {name.lower() for name in static_receptacles()}
    return _NAME.sub(lambda m: m.group() if m.group(1) in places else "?", command)

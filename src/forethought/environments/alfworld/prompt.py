"""ALFWorld's admissible commands in few words, without loss.

Fifty commands of a kitchen, most of them "go to …", fit into forty tokens:

    take from desk 1: mug 1, pen 2
    examine: what can be taken, desk 1
    also: help, inventory, look
    go: cabinet 1-9, drawer 1 2
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from forethought.configs.parts import ResponseFormat
from forethought.environments.alfworld.notes import (
    NOTHING_HAPPENS,
    Exchange,
    Notes,
    kind,
)
from forethought.environments.alfworld.package import static_receptacles
from forethought.environments.contract import Past, Wording
from forethought.types import Message, Observation

TAKEN = "what can be taken"
ALWAYS = ("help", "inventory", "look")


def group_commands(commands: Sequence[str], new: Collection[str] | None = None) -> list[str]:
    """The commands by verb, one line for each.

    Args:
        new: receptacles whose inside was not seen; where given, they are gone to, and examined,
            in lines of their own, the last ones.
    """
    go = [c.removeprefix("go to ") for c in commands if c.startswith("go to ")]
    taken: defaultdict[str, list[str]] = defaultdict(list)
    simple: defaultdict[str, list[str]] = defaultdict(list)
    whole: list[str] = []
    unseen: list[str] = []
    for command in commands:
        verb, _, rest = command.partition(" ")
        if command.startswith("go to ") or command in ALWAYS:
            continue
        if verb == "take" and " from " in rest:
            thing, _, place = rest.partition(" from ")
            taken[place].append(thing)
        elif verb == "examine" and rest in (new or ()):
            unseen.append(rest)
        elif verb in ("open", "close", "examine", "use") and rest:
            simple[verb].append(rest)
        else:
            whole.append(command)
    lines = [f"take from {place}: {join_names(things)}" for place, things in taken.items()]
    lines += whole
    can_be_taken = [thing for things in taken.values() for thing in things]
    for verb, names in simple.items():
        lines.append(f"{verb}: {_examined(names, can_be_taken)}")
    others = [command for command in commands if command in ALWAYS]
    lines += ["also: " + ", ".join(others)] if others else []
    if new is None:
        return lines + ([f"go: {join_names(go)}"] if go else [])
    ending = (
        ("go visited", [place for place in go if place not in new]),
        ("examine new", unseen),
        ("go new", [place for place in go if place in new]),
    )
    return lines + [f"{head}: {join_names(names)}" for head, names in ending if names]


def ungroup(lines: Iterable[str]) -> set[str]:
    """The commands again: what proves that nothing was lost."""
    commands: set[str] = set()
    taken: list[str] = []
    for line in lines:
        head, colon, rest = line.partition(": ")
        verb = head.partition(" ")[0]
        if not colon:
            commands.add(line)
        elif verb == "go":
            commands |= {f"go to {name}" for name in split_names(rest)}
        elif verb == "take":
            names, place = split_names(rest), head.removeprefix("take from ")
            taken += names
            commands |= {f"take {name} from {place}" for name in names}
        elif verb == "also":
            commands |= set(rest.split(", "))
        else:
            if rest.startswith(TAKEN):
                commands |= {f"{verb} {name}" for name in taken}
                rest = rest.removeprefix(TAKEN).removeprefix(", ")
            commands |= {f"{verb} {name}" for name in split_names(rest)}
    return commands


def join_names(names: Iterable[str]) -> str:
    """ "cabinet 1, cabinet 2, cabinet 3, drawer 5" as "cabinet 1-3, drawer 5"; numbers rise."""
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for name in names:
        kind, number = _split(name)
        numbers[kind].append(number)
    return ", ".join(
        " ".join([kind, *_runs(sorted(n for n in found if n >= 0))])
        for kind, found in sorted(numbers.items())
    )


def split_names(text: str) -> list[str]:
    """The names that `join_names` joined."""
    names: list[str] = []
    for part in text.split(", ") if text else []:
        kind, *runs = part.split(" ")
        for run in runs:
            first, _, last = run.partition("-")
            names += [f"{kind} {number}" for number in range(int(first), int(last or first) + 1)]
        names += [] if runs else [kind]
    return names


def _runs(numbers: list[int]) -> list[str]:
    """Three or more numbers in a row as "1-3"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [
        text
        for run in runs
        for text in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))
    ]


def _examined(names: list[str], taken: list[str]) -> str:
    """Things at hand can be taken and examined; they are named once."""
    if not taken or not set(taken) <= set(names):
        return join_names(names)
    rest = [name for name in names if name not in set(taken)]
    return ", ".join(filter(None, [TAKEN, join_names(rest)]))


def _split(name: str) -> tuple[str, int]:
    """Kind and number; -1 where there is none."""
    kind, _, number = name.rpartition(" ")
    return (kind, int(number)) if number.isdigit() else (name, -1)


FIRST = "hold: "
"""How every summary begins, and no observation of the environment itself."""

_ARTICLE = re.compile(r"\ba ([a-z]+ \d+)")
_ARRIVED = re.compile(r"^You arrive at [a-z]+ \d+\. ")


def alfworld_summary(past: Sequence[Past], observation: Observation) -> Observation:
    """The present observation with the summary as its text."""
    notes = Notes.of(exchanges(past, observation))
    latest = observation.text or ""
    held = notes.held
    found = seen(notes)
    lines = [
        FIRST + (", ".join([held, *sorted(notes.states.get(held, ()))]) if held else "nothing"),
        "seen: " + (", ".join(found.elsewhere) or "nothing"),
        *(["placed: " + ", ".join(found.placed)] if found.placed else []),
        "obs: " + (shorten(latest) if past else "the room"),
        *group_commands(
            observation.admissible_actions or (),
            frozenset(notes.receptacles) - frozenset(notes.contents),
        ),
    ]
    return replace(observation, text="\n".join(lines))


def exchanges(past: Sequence[Past], observation: Observation) -> list[Exchange]:
    """Commands with the text that followed each; the introduction comes first."""
    texts = [*(step.observation.text or "" for step in past), observation.text or ""]
    actions = [None, *(step.action for step in past)]
    return [Exchange(action, text) for action, text in zip(actions, texts, strict=True)]


class Found(NamedTuple):
    """Things whose class the goal names, with their place and what was done to them."""

    elsewhere: list[str]
    placed: list[str]
    """In a receptacle whose class the goal names, too."""


def seen(notes: Notes) -> Found:
    """What is known of the things that the goal names."""
    words = set(re.findall(r"[a-z]+", notes.goal))
    found = Found([], [])
    for place, things in notes.contents.items():
        for thing in things:
            if kind(thing) in words:
                states = sorted(notes.states.get(thing, ()))
                found_at = " ".join([*states, thing, "in", place])
                (found.placed if kind(place) in words else found.elsewhere).append(found_at)
    return found


def shorten(text: str) -> str:
    """The engine's text without the words that say nothing."""
    if text.strip() == NOTHING_HAPPENS:
        return "nothing happens"
    short = _ARTICLE.sub(r"\1", _ARRIVED.sub("", text)).replace(" you see ", " ")
    return short.replace(", and ", ", ").rstrip(".")


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
    """Goal, what is seen or remembered, commands, and the form of the response."""

    response_format: ResponseFormat
    wording: Wording

    @property
    def response_fields(self) -> tuple[str, ...]:
        """The JSON fields that the prompt asks for, `action` last."""
        thinks = self.response_format == "thoughts"
        return ("thoughts", "reflections", "action") if thinks else ("action",)

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        """One message of the user, with the image if there is one."""
        word = _paper if self.wording == "paper" else _short
        return (Message("user", word(observation, self.response_format), observation.image),)


def _short(observation: Observation, response_format: ResponseFormat) -> str:
    text = observation.text
    lines = [f"goal: {observation.goal}"]
    if text is not None and text.startswith(FIRST):
        lines.append(text)  # the memory, which has the commands in it
    else:
        lines += [] if text is None else [_scene(text)]
        lines += group_commands(_shown_commands(observation))
    form = "thoughts, reflections, action" if response_format == "thoughts" else "action"
    return "\n".join([*lines, f"JSON: {form}"])


def _paper(observation: Observation, response_format: ResponseFormat) -> str:
    text = observation.text
    parts = ["Your are an expert in the ALFRED Embodied Environment."]
    parts.append(f"Your task is to {observation.goal}.")
    if text is not None:
        parts.append(f"You are also given the following text description of the scene: ['{text}'].")
    if text is None or not text.startswith(FIRST):
        actions = ", ".join(f"'{command}'" for command in _shown_commands(observation))
        parts.append(f"Your admissible actions of the current situation are: [{actions}].")
    fields = [_THOUGHTS, _REFLECTIONS, _ACTION] if response_format == "thoughts" else [_ACTION]
    parts.append("Your response should be a valid json file in the following format:")
    form = "{\n" + ",\n".join(fields) + "\n}"
    if response_format == "thoughts":
        form += (
            "\nYour actions should be based solely on the analysis provided by your thoughts!"
            "\nYour output need to be in 60 words!"
        )
    return " ".join(parts) + "\n" + form


def _scene(text: str) -> str:
    """The introduction less its greeting, the task, which is in the first line, and the
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

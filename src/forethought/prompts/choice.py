"""Which wording belongs to which world."""

from collections.abc import Collection

from forethought.configs.parts import AnswerFormat, require
from forethought.prompts.alfworld import ALFWorldPrompter
from forethought.prompts.alfworld_memory import alfworld_memory
from forethought.prompts.cards import GAMES, CardsPrompter, Wording
from forethought.prompts.contract import Memory, Prompter
from forethought.prompts.plain import PlainPrompter
from forethought.prompts.transcript import WORLDS as OF_TURNS
from forethought.prompts.transcript import TranscriptPrompter

ALFWORLDS = ("ALFWorld", "forethought.environments.alfworld.thor:ThorWorld")
"""The same tasks in words and schematic pictures, and in a simulator's frames."""

MEMORIES: dict[str, Memory] = dict.fromkeys(ALFWORLDS, alfworld_memory)
"""Worlds that can sum up an episode, by short name."""


def make_prompter(
    world: str,
    actions: tuple[str, ...] | None,
    *,
    answer_format: AnswerFormat = "thoughts",
    wording: Wording = "short",
) -> Prompter:
    """The world's own wording, or the plain one.

    Args:
        world: short name, e.g. "NumberLine".
        actions: every action of the world, or None where they are open text.
        answer_format: with thoughts before the action, or the action alone.
        wording: "paper" is the published prompt, where the world has one.
    """
    if world in GAMES and actions is not None:
        return CardsPrompter(world, actions, answer_format, wording)
    if world in ALFWORLDS:
        return ALFWorldPrompter(answer_format, wording)
    if world in OF_TURNS:
        return TranscriptPrompter(answer_format)
    return PlainPrompter(actions, answer_format)


def find_memory(world: str, options: Collection[tuple[str, object]] = ()) -> Memory:
    """The summary that a world makes of an episode.

    Args:
        options: of the world, name and value.

    Raises:
        ConfigError: it makes none, or none with these options.
    """
    memory = MEMORIES.get(world)
    known = ", ".join(sorted(MEMORIES)) or "none has one yet"
    expected = f"none or last_k for {world}; worlds with a memory: {known}"
    require(memory is not None, "prompt.history", "memory", expected)
    # Where nothing is said, the summary of it would say that nothing is held.
    expected = "none or last_k with view=picture, which has no text to sum up; view=both has"
    require(("view", "picture") not in options, "prompt.history", "memory", expected)
    assert memory is not None
    return memory

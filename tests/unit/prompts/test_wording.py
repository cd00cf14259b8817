"""What the agent is told: the published wording, the short one, and the plain one."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from forethought import prompts
from forethought.environments import list_environments, make_environment
from forethought.environments.cards.wording import CardsPrompter
from forethought.environments.contract import Prompter
from forethought.prompts.prompters import (
    PlainPrompter,
    TranscriptPrompter,
    find_summary,
    make_prompter,
)
from forethought.types import Observation

IMAGE = np.zeros((4, 4, 3), dtype=np.uint8)
POINTS = (*(str(number) for number in range(1, 11)), "+", "-", "*", "/", "(", ")", "=")


def seen(text: str | None = None, admissible: tuple[str, ...] | None = None) -> Observation:
    return Observation(text, IMAGE, admissible, "key", "Reach the target.", "only")


def told(
    environment: str, actions: tuple[str, ...], observation: Observation, **choices: str
) -> str:
    settings = {"response_format": "thoughts", "wording": "short", **choices}
    prompter: Prompter = PlainPrompter(actions, "thoughts")
    if environment != "SomeEnvironment":
        prompter = CardsPrompter(environment, actions, **settings)  # pyright: ignore[reportArgumentType]
    (message,) = prompter.messages(observation)
    assert message.role == "user"
    assert message.image is observation.image
    return message.text


def test_number_line_as_published() -> None:
    """RL4VLM, appendix B, word for word."""
    assert told("NumberLine", ("-", "+"), seen(), wording="paper") == (
        "You are playing a game called number line. You will see a target number and a current "
        "number in the image. And your goal is to move the current number closer to the target "
        "by choosing either adding or subtracting one to the current number. Your response "
        "should be a valid json file in the following format:\n"
        "{\n"
        '"current number": "x",\n'
        '"target number": "x",\n'
        '"thoughts": {first read out the current and target number, then think carefully about '
        "which action to choose},\n"
        '"action": "-" or "+"\n'
        "}"
    )


@pytest.mark.parametrize("wording", ["short", "paper"])
@pytest.mark.parametrize("environment", ["EZPoints", "Points24"])
def test_the_present_formula_is_told(environment: str, wording: str) -> None:
    empty = told(environment, POINTS, seen(""), wording=wording)
    begun = told(environment, POINTS, seen("(7+"), wording=wording)
    assert "'(7+'" in begun
    assert begun.replace("'(7+'", "''") == empty
    assert "{formula}" not in begun + empty


def test_the_published_points_games_list_their_actions() -> None:
    text = told("EZPoints", ("1", "+"), seen("7"), wording="paper")
    assert "You can choose between ['1', '+']." in text


@pytest.mark.parametrize("wording", ["short", "paper"])
@pytest.mark.parametrize("environment", ["NumberLine", "EZPoints", "Points24", "Blackjack"])
def test_without_thoughts_only_the_action_is_asked_for(environment: str, wording: str) -> None:
    thinking = told(environment, POINTS, seen("7"), wording=wording)
    acting = told(environment, POINTS, seen("7"), wording=wording, response_format="action_only")
    assert '"thoughts"' in thinking
    assert acting.count("\n") == 3
    assert acting.split("\n")[2].startswith('"action"')
    assert thinking.split("\n{\n")[0] == acting.split("\n{\n")[0]


def test_short_means_short() -> None:
    for environment in ("NumberLine", "EZPoints", "Points24", "Blackjack"):
        short, paper = (told(environment, POINTS, seen("7"), wording=w) for w in ("short", "paper"))
        assert len(short) < len(paper) / 1.8, environment


def test_plain_wording() -> None:
    text = told("SomeEnvironment", ("left", "right"), seen("A fork."))
    assert text == (
        'Reach the target.\nA fork.\nActions: left, right\nAnswer as JSON: {"thoughts", "action"}'
    )


def test_plain_wording_lists_what_is_open_now() -> None:
    assert "Actions: left\n" in told("SomeEnvironment", ("left", "right"), seen(None, ("left",)))


def test_open_text_gets_the_plain_wording_without_a_list() -> None:
    prompter = PlainPrompter(None, "action_only")
    (message,) = prompter.messages(seen())
    assert message.text == 'Reach the target.\nAnswer as JSON: {"action"}'


def test_an_environment_brings_its_own_wording() -> None:
    assert isinstance(make_prompter(make_environment("EZPoints")), CardsPrompter)
    assert isinstance(make_prompter(make_environment("Wordle")), TranscriptPrompter)
    assert isinstance(make_prompter(make_environment("Bandit")), PlainPrompter)


class Whisperer:
    """An environment of somebody else's, with wording, summary and all."""

    actions = ("hush",)

    def prompter(self, response_format: str, wording: str) -> Prompter:
        return PlainPrompter((wording, response_format), "thoughts")

    @property
    def summarize(self):  # type: ignore[no-untyped-def]
        return lambda past, observation: replace(observation, text=f"{len(past)} steps ago")


def test_so_does_one_of_somebody_elses() -> None:
    own = Whisperer()
    prompter = make_prompter(own, response_format="action_only", wording="paper")  # type: ignore[arg-type]
    assert "Actions: paper, action_only" in prompter.messages(seen())[0].text
    summarize = find_summary("Whisperer", own)  # type: ignore[arg-type]
    assert summarize((), seen()).text == "0 steps ago"


def test_no_environment_is_named() -> None:
    """Neither imported nor mentioned: what is particular to one comes through the contract."""
    names = {spec.name.lower() for spec in list_environments()}
    folder = Path(prompts.__file__).parent
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {
            node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module is not None
        }
        allowed = ("forethought.environments.contract", "forethought.environments.parts")
        shipped = {m for m in imported if m.startswith("forethought.environments")} - {*allowed}
        assert not shipped, path
        texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        words = {word for text in texts if isinstance(text, str) for word in text.lower().split()}
        assert not words & names, path

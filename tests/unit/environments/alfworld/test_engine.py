"""The fast engine against the package's own, and what it leaves of the process."""

import gzip
import random
import sys
from pathlib import Path

import pytest

from benchmarks.speed.plain_alfworld import PlainEngine
from forethought.environments.alfworld import package
from forethought.environments.alfworld.engine import (
    NOTHING_HAPPENS,
    Engine,
    GameText,
    translate,
    translate_again,
)
from forethought.environments.alfworld.games import Game
from forethought.environments.alfworld.generator import Draw, draw_game
from forethought.environments.alfworld.grammar import (
    compile_expression,
    read_grammar,
    readable_names,
)
from forethought.environments.alfworld.package import SPLITS, TaskType
from forethought.errors import StorageError
from tests.unit.environments.alfworld.conftest import small_game


@pytest.fixture(scope="session")
def plain() -> PlainEngine:
    return PlainEngine()


def play_both(game: Game, fast: Engine, plain: PlainEngine, steps: int) -> None:
    choices = random.Random(game.trial)
    assert fast.start(game.text) == plain.start(game.text)
    for _ in range(steps):
        assert fast.commands == plain.commands
        assert fast.won == plain.won
        assert set(fast.facts()) == set(plain.facts())
        command = choices.choice((*fast.commands, "dance"))
        assert fast.step(command) == plain.step(command)


@pytest.mark.parametrize("kind", [TaskType.LOOK, TaskType.HEAT])
def test_same_words_as_the_package(kind: TaskType, engine: Engine, plain: PlainEngine) -> None:
    """Every reply, every list of commands, every fact."""
    play_both(small_game(kind), engine, plain, 12)


@pytest.mark.slow
def test_same_words_in_rooms_of_all_kinds(engine: Engine, plain: PlainEngine) -> None:
    """`forethought bench alfworld` does it for 200 games."""
    for index in range(12):
        play_both(draw_game(Draw(5, SPLITS[index % 3], index)), engine, plain, 20)


def test_a_text_that_is_no_command_changes_nothing(engine: Engine) -> None:
    engine.start(small_game(TaskType.PICK).text)
    before = engine.commands, set(engine.facts())
    assert engine.step("go to cabinet 12") == NOTHING_HAPPENS
    assert before == (engine.commands, set(engine.facts()))


def test_receptacles_at_one_point(engine: Engine) -> None:
    """There is no way from one drawer to the other, but both can be opened."""
    engine.start(small_game(TaskType.PICK).text)
    engine.step("go to drawer 1")
    assert "go to drawer 2" not in engine.commands
    assert engine.step("go to drawer 2") == NOTHING_HAPPENS
    assert engine.step("open drawer 2").startswith("You open the drawer 2.")


def test_the_process_is_left_as_it_was() -> None:
    """The translator overwrites the command line and swaps the standard output."""
    arguments, output = sys.argv, sys.stdout
    text = small_game(TaskType.PICK).text
    translate_again(text.domain, text.problem)
    assert sys.argv is arguments
    assert sys.stdout is output
    with pytest.raises(StorageError, match="cannot be translated"):
        translate_again(text.domain, "(define (problem broken)")
    assert sys.argv is arguments
    assert sys.stdout is output


def test_translations_are_kept_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETHOUGHT_CACHE", str(tmp_path))
    text = small_game(TaskType.PICK).text
    first = translate(text.domain, text.problem)
    (path,) = tmp_path.rglob("*.json.gz")
    stored = path.read_bytes()
    assert translate(text.domain, text.problem) == first
    path.write_bytes(stored[: len(stored) // 2])
    assert translate(text.domain, text.problem) == first, "a torn file is made anew"
    assert gzip.decompress(path.read_bytes()) == gzip.decompress(stored)
    path.write_bytes(stored[:10] + b"\xff" + stored[11:])  # a block of no known type
    assert translate(text.domain, text.problem) == first, "so is one with other bytes"
    assert translate(text.domain, text.problem.replace("_T_", "_U_")) == first
    assert len(list(tmp_path.rglob("*.json.gz"))) == 2, "another problem, another file"


def test_a_game_without_a_solution_is_refused(engine: Engine) -> None:
    text = small_game(TaskType.PICK).text
    impossible = GameText(
        text.domain, text.problem.replace("?o MugType", "?o CupType"), text.grammar
    )
    with pytest.raises(StorageError, match="cannot be solved"):
        engine.start(impossible)


def test_facts_of_old_games_are_let_go(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """TextWorld keeps every fact that there ever was; a game goes on where they are dropped."""
    import mementos.core

    monkeypatch.setattr(package, "MAX_REMEMBERED", 10)
    other = Engine()
    other.start(small_game(TaskType.PICK).text)
    remembered = mementos.core._memento_cache  # pyright: ignore[reportPrivateUsage]
    remembered["old"] = None
    engine.start(small_game(TaskType.LOOK).text)
    assert "old" not in remembered
    assert other.step("go to shelf 1") == "You arrive at shelf 1. On the shelf 1, you see nothing."
    assert "examine shelf 1" in other.commands
    other.close()


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "o.name.upper()", "o.__class__", "1 + 1", "[o]", "o.name +", "lambda: o"],
)
def test_expressions_of_a_game_are_not_executed(text: str) -> None:
    with pytest.raises(StorageError, match="not safe"):
        compile_expression(text)


@pytest.mark.parametrize(
    "text", [" + ".join(["o.name"] * 20_000), "(" * 100_000, "a.b" * 100 + "\0", "-" * 50_000]
)
def test_an_expression_without_end_is_one_line(text: str) -> None:
    with pytest.raises(StorageError, match="expected 200 at most") as error:
        compile_expression(text)
    assert len(str(error.value)) < 200


def test_half_an_expression_is_one_line() -> None:
    for text in ("\0", "(" * 150, "o.name + " * 22):
        with pytest.raises(StorageError):
            compile_expression(text)


def test_a_grammar_that_sums_without_end_is_one_line() -> None:
    grammar = small_game(TaskType.PICK).text.grammar
    place = next(found for found in ("{o.name}", "{r.name}") if found in grammar)
    hostile = grammar.replace(place, "{" + " + ".join([place[1:-1]] * 20_000) + "}", 1)
    with pytest.raises(StorageError, match="has an expression of"):
        read_grammar(hostile)


def test_the_task_does_not_make_another_grammar() -> None:
    one, other = (read_grammar(small_game(k).text.grammar) for k in (TaskType.PICK, TaskType.HEAT))
    assert one.grammar is other.grammar
    assert (one.task, other.task) == ("put a mug in shelf", "put a hot mug in shelf")


def test_names_are_numbered_from_the_last() -> None:
    names = readable_names(
        ["mug_bar_1", "mug_bar_2", "sink_bar_1_bar_sinkbasin", "agent1", "mug_bar_3"]
    )
    assert names == {
        "mug_bar_1": "mug 3",
        "mug_bar_2": "mug 2",
        "mug_bar_3": "mug 1",
        "sink_bar_1_bar_sinkbasin": "sinkbasin 1",
        "agent1": "agent1 ",
    }

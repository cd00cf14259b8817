"""Wordle: marks letter by letter, what a guess costs, what the players know."""

import numpy as np
import pytest

from forethought.environments.registry import make_environment
from forethought.environments.wordle.marks import (
    Rules,
    WordList,
    code,
    known,
    load_words,
    mark,
    mark_table,
    shown,
)
from forethought.environments.wordle.wordle import Wordle, all_candidates, best_guess, consistent
from forethought.errors import ConfigError


def signs(guess: str, hidden: str, rules: Rules = "official") -> str:
    return shown(code(mark(guess, hidden, rules)))


@pytest.mark.parametrize(
    ("guess", "hidden", "official", "reference"),
    [
        pytest.param("crane", "crane", "g g g g g", None, id="found"),
        pytest.param("crane", "moist", "b b b b b", None, id="nothing"),
        pytest.param("crane", "nacre", "y y y y g", None, id="moved"),
        pytest.param("eerie", "there", "y b y b g", "y y y b g", id="two of three"),
        pytest.param("there", "eerie", "b b y y g", None, id="both of two"),
        pytest.param("level", "eagle", "y y b y b", "y y b y y", id="first come"),
        pytest.param("allow", "dolly", "b y g y b", None, id="in place comes first"),
        pytest.param("speed", "abide", "b b y b y", "b b y y y", id="one left"),
        pytest.param("error", "rural", "b y g b b", "b y g b y", id="none left"),
    ],
)
def test_marks(guess: str, hidden: str, official: str, reference: str | None) -> None:
    assert signs(guess, hidden) == official
    assert signs(guess, hidden, "reference") == (reference or official)


@pytest.mark.parametrize("rules", ["official", "reference"])
def test_the_table_holds_the_marks(rules: Rules) -> None:
    words = load_words("small")
    table = mark_table("small", rules)
    for g in range(0, len(words), 7):
        row = [code(mark(words[g], hidden, rules)) for hidden in words]
        assert table[g].tolist() == row


@pytest.mark.parametrize(("name", "count"), [("small", 412), ("large", 754)])
def test_the_lists(name: WordList, count: int) -> None:
    words = load_words(name)
    assert len(words) == len(set(words)) == count
    assert list(words) == sorted(words)
    assert all(len(word) == 5 and word.islower() and word.isascii() for word in words)
    assert not any(word.endswith("s") for word in words)
    assert set(load_words("small")) <= set(load_words("large"))


def begun(**options: str) -> tuple[Wordle, str]:
    """An environment, and the word that is hidden in it."""
    environment = make_environment("Wordle", **options)
    assert isinstance(environment, Wordle)
    environment.reset(0)
    return environment, load_words(environment.words)[environment._hidden]  # pyright: ignore[reportPrivateUsage]


def test_the_hidden_word_pays_nothing_and_ends() -> None:
    environment, hidden = begun()
    assert environment.step("about") == (-1.0, False, False)
    assert environment.step(hidden) == (0.0, True, False)
    assert environment.success()


def test_the_sixth_wrong_guess_terminates() -> None:
    environment, hidden = begun()
    wrong = [word for word in load_words("small") if word != hidden][:6]
    outcomes = [environment.step(word) for word in wrong]
    assert outcomes == [(-1.0, False, False)] * 5 + [(-1.0, True, False)]
    assert not environment.success()


def test_the_sixth_guess_may_win() -> None:
    environment, hidden = begun()
    for _ in range(5):
        environment.step("xyzzy")
    assert environment.step(hidden) == (0.0, True, False)
    assert environment.success()


def test_a_word_outside_the_list_is_a_guess() -> None:
    environment, _ = begun()
    assert environment.step("zzzzz") == (-1.0, False, False)
    assert environment.observation().text == "> zzzzz\nnot in the list"
    assert environment.metrics()[0] == ("not_listed", 1.0)
    assert environment.expert().action == "t r a d e"  # nothing was learned


@pytest.mark.parametrize("spelling", ["trade", "t r a d e", " TRADE\n", "T r a de"])
def test_a_word_however_spelled(spelling: str) -> None:
    environment, hidden = begun()
    environment.step(spelling)
    text = environment.observation().text
    assert text is not None
    assert text.split("\n")[1] == signs("trade", hidden)
    assert environment.metrics()[0] == ("not_listed", 0.0)


@pytest.mark.parametrize(
    ("guesses", "hidden", "told"),
    [
        pytest.param((), "crane", "now any any any any any", id="nothing"),
        pytest.param(("crane",), "moist", "not a c e n r, now any any any any any", id="absent"),
        pytest.param(("crane",), "nacre", "has a c n r, now any any any any e", id="elsewhere"),
        pytest.param(
            ("trade", "crane"), "nacre", "not d t, has a c n r, now any any any any e", id="both"
        ),
        pytest.param(("nacho", "crane"), "crane", "not h o, now c r a n e", id="then in place"),
        pytest.param(("eerie",), "there", "not i, has r, now any any any any e", id="two of three"),
    ],
)
def test_what_is_known(guesses: tuple[str, ...], hidden: str, told: str) -> None:
    assert known((guess, code(mark(guess, hidden, "official"))) for guess in guesses) == told


def test_the_replies_may_say_what_is_known() -> None:
    environment, hidden = begun(replies="known")
    guesses = [guess for guess in ("about", "trade") if guess != hidden]
    for guess in guesses:
        environment.step(guess)
    marks = [(guess, code(mark(guess, hidden, "official"))) for guess in guesses]
    lines = (environment.observation().text or "").split("\n")
    assert lines[1::2] == [
        f"{shown(marks[n][1])}, {known(marks[: n + 1])}" for n in range(len(guesses))
    ]
    environment.reset(1)
    environment.step("xyzzy")
    assert environment.observation().text == "> xyzzy\nnot in the list"


@pytest.mark.parametrize(("spelling", "said"), [("letters", "t r a d e"), ("words", "trade")])
def test_how_guesses_are_said(spelling: str, said: str) -> None:
    environment, _ = begun(spelling=spelling)
    assert environment.expert().action == said
    assert said in environment.legal_actions()
    player = environment.data_policy(0.0, np.random.default_rng(0))
    assert {player().action for _ in range(100)} <= set(environment.legal_actions())


@pytest.mark.parametrize(("spelling", "said"), [("letters", "t r a d e"), ("words", "trade")])
def test_a_word_is_legal_once(spelling: str, said: str) -> None:
    """However it was spelled; in the next game it is open again."""
    environment, hidden = begun(spelling=spelling)
    assert hidden != "trade"
    everything = environment.legal_actions()
    for guess in ("trade", "t r a d e", "xyzzy"):
        environment.step(guess)
        assert environment.legal_actions() == tuple(word for word in everything if word != said)
    assert environment.metrics() == (("not_listed", 1.0), ("repeated", 1.0))
    environment.reset(1)
    assert environment.legal_actions() == everything


def test_candidates_are_the_words_that_agree_with_all_marks() -> None:
    environment, hidden = begun()
    guesses = [guess for guess in ("about", "trade", "steel") if guess != hidden]
    for guess in guesses:
        environment.step(guess)
    left = [
        word
        for word in load_words("small")
        if all(
            mark(guess, word, "official") == mark(guess, hidden, "official") for guess in guesses
        )
    ]
    candidates = environment._candidates  # pyright: ignore[reportPrivateUsage]
    assert [load_words("small")[number] for number in candidates] == left
    assert hidden in left


def test_the_expert_takes_the_most_telling_word() -> None:
    """Entropy computed the slow way, after one guess."""
    words = load_words("small")
    everything = all_candidates("small")
    seen = code(mark("trade", "house", "official"))
    left = consistent(everything, words.index("trade"), seen, "small", "official")
    assert len(left) > 3

    def entropy(guess: str) -> float:
        marks = [mark(guess, words[number], "official") for number in left]
        shares = np.array([marks.count(one) for one in set(marks)]) / len(marks)
        return float(-(shares * np.log(shares)).sum())

    best = best_guess(left, "small", "official")
    assert entropy(words[best]) == pytest.approx(max(map(entropy, words)))


def test_the_expert_guesses_what_is_left() -> None:
    for count in (1, 2):
        left = np.array([7, 99][:count])
        assert best_guess(left, "small", "official") == 7


@pytest.mark.parametrize("skill", [0.0, 1.0])
def test_the_data_policy_keeps_to_the_marks_by_its_skill(skill: float) -> None:
    environment, _ = begun()
    agreed = total = 0
    for seed in range(200):
        environment.reset(seed)
        player = environment.data_policy(skill, np.random.default_rng(seed))
        environment.step(player().action)
        candidates = environment._candidates.tolist()  # pyright: ignore[reportPrivateUsage]
        if not environment.success():
            guess = player().action.replace(" ", "")
            agreed += load_words("small").index(guess) in candidates
            total += 1
    assert agreed == total if skill else agreed < total / 3


def test_the_data_policys_draws_are_the_seeds() -> None:
    games = []
    for seed in (1, 1, 2):
        environment, _ = begun()
        player = environment.data_policy(0.3, np.random.default_rng(seed))
        games.append([player().action for _ in range(5)])
    assert games[0] == games[1] != games[2]


@pytest.mark.parametrize("skill", [-0.1, 1.1, float("nan")])
def test_a_skill_outside_the_scale_is_refused(skill: float) -> None:
    with pytest.raises(ConfigError, match="skill is"):
        begun()[0].data_policy(skill, np.random.default_rng(0))


def test_the_reference_draws_the_word_anew_among_those_that_agree() -> None:
    environment, _ = begun(rules="reference")
    words = load_words("small")
    changed = 0
    for seed in range(30):
        environment.reset(seed)
        first = environment._hidden  # pyright: ignore[reportPrivateUsage]
        environment.step("about")
        environment.step("steel")
        changed += first != environment._hidden  # pyright: ignore[reportPrivateUsage]
        hidden = words[environment._hidden]  # pyright: ignore[reportPrivateUsage]
        lines = (environment.observation().text or "").split("\n")
        told = [signs("about", hidden, "reference"), signs("steel", hidden, "reference")]
        assert lines[1::2] == told
    assert changed > 20


@pytest.mark.parametrize(
    "options",
    [
        {"words": "huge"},
        {"rules": "paper"},
        {"replies": "all"},
        {"spelling": "phonetic"},
    ],
)
def test_wrong_options_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        make_environment("Wordle", **options)

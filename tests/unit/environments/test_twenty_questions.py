"""20 Questions: what is understood, what a question costs."""

import numpy as np
import pytest

from forethought.environments.registry import make_environment
from forethought.environments.twenty_questions.questions import (
    bare_words,
    load_attributes,
    load_things,
    sentences,
    truth_table,
    understand,
)
from forethought.environments.twenty_questions.twenty_questions import (
    TwentyQuestions,
    all_candidates,
    good_questions,
    remaining,
)
from forethought.errors import ConfigError

NAMES = [thing.name for thing in load_things()]
ATTRIBUTES = len(load_attributes())


def begun(hidden: str = "cat") -> TwentyQuestions:
    """An environment in which this object is hidden."""
    environment = make_environment("TwentyQuestions")
    assert isinstance(environment, TwentyQuestions)
    environment.reset(0)
    environment._hidden = NAMES.index(hidden)  # pyright: ignore[reportPrivateUsage]
    return environment


def ask(environment: TwentyQuestions, question: str) -> str:
    environment.step(question)
    text = environment.observation().text
    assert text is not None
    return text.split("\n")[-1]


# --- what it understands -------------------------------------------------------------------


def test_every_wording_is_understood() -> None:
    assert len(sentences()) == ATTRIBUTES + 158
    for number, ways in enumerate(sentences()):
        assert len(ways) == len(set(ways)) > 0
        for way in ways:
            assert understand(way) == number
            assert understand(way.lower().rstrip("?")) == number
            assert way[0].isupper()
            assert way.endswith("?")


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("Is this thing usually made of metal??", "Is it made of metal?"),
        ("ok, tell me: is it alive", None),
        ("OK, tell me, is it alive", "Is it alive?"),
        ("Would you say it is alive?", "Is it alive?"),
        ("Does that item have wheels?", "Does it have wheels?"),
        ("has it got wheels", "Does it have wheels?"),
        ("Is it able to fly?", "Can it fly?"),
        ("Do people sit on it?", "Do people sit on it?"),
        ("Do we sit on it?", "Do people sit on it?"),
        ("Is it a kind of fruit?", "Is it a fruit?"),
        ("Is it a type of a vehicle?", "Is it a vehicle?"),
        ("Is it something that people can eat?", "Is it something to eat?"),
        ("My guess is a cat", "Is it a cat?"),
        ("I think it is the cat.", "Is it a cat?"),
        ("Is it an cat?", "Is it a cat?"),
        ("Is it the ocean?", "Is it an ocean?"),
        ("is it a plane", "Is it an airplane?"),
        ("Is it a tv?", "Is it a television?"),
        ("Are you thinking of corn?", "Is it corn?"),
        ("Is it a sort of corn?", "Is it corn?"),
        ("Is it orange in color?", "Is its color orange?"),
        ("Is it an orange?", "Is it an orange?"),
    ],
)
def test_other_words_for_the_same(text: str, usual: str | None) -> None:
    number = understand(text)
    assert (None if number is None else sentences()[number][0]) == usual


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "Is it",
        "Is it not alive?",
        "Isn't it alive?",
        "Is it alive or made of metal?",
        "Is it a unicorn?",
        "Is it a cat or a dog?",
        "What is it?",
        "Is it alive? Is it a cat?",
        "Is it alive" + " " * 300,
    ],
)
def test_the_rest_is_not_understood(text: str) -> None:
    assert understand(text) is None
    assert ask(begun(), text) == "I don't understand."


# --- what it costs -------------------------------------------------------------------------


def test_the_oracle_answers_from_the_table() -> None:
    environment = begun("airplane")
    assert ask(environment, "Can it fly?") == "Yes."
    assert ask(environment, "Is it alive?") == "No."
    assert ask(environment, "Is it a ship?") == "No."
    assert ask(environment, "Is it a plane?") == "Yes."
    assert environment.success()


def test_the_right_guess_pays_nothing_and_ends() -> None:
    environment = begun("corn")
    assert environment.step("Is it a vegetable?") == (-1.0, False, False)
    assert environment.step("Is it a cat?") == (-1.0, False, False)
    assert environment.step("Could it be corn?") == (0.0, True, False)
    assert environment.success()


def test_the_twentieth_question_terminates() -> None:
    environment = begun("cat")
    outcomes = [environment.step("Is it alive?") for _ in range(20)]
    assert outcomes == [(-1.0, False, False)] * 19 + [(-1.0, True, False)]
    assert not environment.success()


def test_the_twentieth_question_may_win() -> None:
    environment = begun("cat")
    for _ in range(19):
        environment.step("What?")
    assert environment.metrics()[0] == ("not_understood", 19.0)
    assert environment.step("Is it a cat?") == (0.0, True, False)


def test_questions_that_are_not_understood_cost_as_much() -> None:
    assert begun().step("What?") == (-1.0, False, False)


def test_a_true_attribute_is_no_guess() -> None:
    """Barking is true of the dog alone, and still has to be followed by the guess."""
    environment = begun("dog")
    assert environment.step("Does it bark?") == (-1.0, False, False)
    assert environment.expert().action == "Is it a dog?"


# --- how it is played ----------------------------------------------------------------------


def test_answers_narrow_down() -> None:
    left = all_candidates()
    for text, answer in (("Is it alive?", True), ("Is it an animal?", False)):
        number = understand(text)
        assert number is not None
        left = remaining(left, number, answer)
    plants = ["tree", "bush", "forest", "cactus"]
    assert [NAMES[number] for number in left] == plants
    guess = understand("Is it a tree?")
    assert guess is not None
    assert [NAMES[number] for number in remaining(left, guess, False)] == plants[1:]
    assert [NAMES[number] for number in remaining(left, guess, True)] == ["tree"]


def test_the_best_question_splits_most_evenly() -> None:
    """backpack: 90 of 158; nothing is closer to half."""
    true = truth_table().sum(axis=0)
    best = good_questions(all_candidates(), 5)
    unevenness = np.abs(true - 79)
    assert unevenness[best[0]] == unevenness.min()
    assert sorted(unevenness[list(best)]) == sorted(unevenness)[:5]


def test_three_are_guessed() -> None:
    cats = np.array(sorted(NAMES.index(name) for name in ("cat", "lion", "tiger")))
    assert good_questions(cats, 5) == tuple(ATTRIBUTES + int(number) for number in cats)


@pytest.mark.parametrize("skill", [0.0, 1.0])
def test_the_data_policy_is_informed_by_its_skill(skill: float) -> None:
    environment = begun()
    informed = 0
    for seed in range(300):
        environment.reset(seed)
        player = environment.data_policy(skill, np.random.default_rng(seed))
        number = understand(player().action)
        assert number is not None
        informed += number in good_questions(all_candidates(), 5)
    assert informed == 300 if skill else informed < 30


def test_the_data_policy_uses_all_wordings() -> None:
    player = begun().data_policy(1.0, np.random.default_rng(0))
    said = {player().action for _ in range(300)}
    best = good_questions(all_candidates(), 5)
    assert said == {way for number in best for way in sentences()[number]}


def test_questions_may_be_said_in_words() -> None:
    environment = make_environment("TwentyQuestions", wordings="words")
    assert isinstance(environment, TwentyQuestions)
    assert environment.reset(0).goal.endswith("Guess: cat?")
    player = environment.data_policy(1.0, np.random.default_rng(0))
    said = {player().action for _ in range(300)}
    assert said == {bare_words()[number] for number in good_questions(all_candidates(), 5)}
    assert said < set(environment.legal_actions())
    assert environment.expert().action in said
    with pytest.raises(ConfigError, match="expected sentences or words"):
        make_environment("TwentyQuestions", wordings="signs")


def test_a_question_is_legal_once() -> None:
    """However it was asked; in the next game it is open again."""
    environment = make_environment("TwentyQuestions", wordings="words")
    environment.reset(0)
    everything = environment.legal_actions()
    assert everything == bare_words()
    for asked in ("Is it made of metal?", "metal?", "What is it?"):
        environment.step(asked)
        assert environment.legal_actions() == tuple(w for w in everything if w != "metal?")
    assert environment.metrics() == (("not_understood", 1.0), ("repeated", 1.0))
    environment.reset(1)
    assert environment.legal_actions() == everything


def test_replies_may_be_facts() -> None:
    """Whose words, but for case, are a question of the list."""
    environment = make_environment("TwentyQuestions", wordings="words", replies="facts")
    assert isinstance(environment, TwentyQuestions)
    assert "Yes, METAL, or No, metal." in environment.reset(0).goal
    environment._hidden = NAMES.index("cat")  # pyright: ignore[reportPrivateUsage]
    assert ask(environment, "alive?") == "ALIVE"
    assert ask(environment, "Is it bigger than a house?") == "bigger than a house"
    assert ask(environment, "sharpie?") == "sharpie"
    assert ask(environment, "blorp?") == "I don't understand."
    assert ask(environment, "cat?") == "CAT"
    with pytest.raises(ConfigError, match="expected answers or facts"):
        make_environment("TwentyQuestions", replies="signs")


def test_every_word_is_understood() -> None:
    assert [understand(bare) for bare in bare_words()] == list(range(len(bare_words())))
    assert understand("Metal") == understand("Is it made of metal?") is not None
    assert understand("cat?") == understand("Is it a cat?") is not None
    assert understand("paper?") == understand("Is it a piece of paper?")
    assert understand("made of paper?") == understand("Is it made of paper?")


def test_a_skill_outside_the_scale_is_refused() -> None:
    with pytest.raises(ConfigError, match="skill is"):
        begun().data_policy(2.0, np.random.default_rng(0))

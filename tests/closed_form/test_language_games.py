"""What the language games' ceilings and baselines are, each computed twice."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from forethought.environments import make_environment
from forethought.environments.contract import Environment, WithDataPolicy
from forethought.environments.twenty_questions import twenty_questions
from forethought.environments.twenty_questions.questions import load_attributes, load_things
from forethought.environments.wordle import wordle
from forethought.environments.wordle.marks import Rules, WordList, load_words, mark

WORDLE: list[tuple[WordList, Rules, int]] = [
    # Wrong guesses of the expert, summed over all hidden words.
    ("small", "official", 774),
    ("small", "reference", 778),
    ("large", "official", 1549),
    ("large", "reference", 1551),
]


@pytest.mark.parametrize(("words", "rules", "wrong"), WORDLE)
def test_wordles_expert_finds_every_word(words: WordList, rules: Rules, wrong: int) -> None:
    """-1.879, -1.888; -2.054, -2.057."""
    worth = wordle.expert_result(words, rules)
    assert worth.success_rate == 1.0
    assert worth.mean_return == pytest.approx(-wrong / len(load_words(words)), abs=1e-12)


def test_wordles_expert_played_word_by_word() -> None:
    """Through the environment itself, with its own marks and its own bookkeeping."""
    environment = make_environment("Wordle")
    total, found = 0.0, set[str]()
    seed = 0
    while len(found) < 412:
        environment.reset(seed)
        seed += 1
        hidden = load_words("small")[vars(environment)["_hidden"]]
        if hidden not in found:
            found.add(hidden)
            total += played(environment)
    assert total == -774


def played(environment: Environment) -> float:
    """The expert's return in the present episode."""
    total, over = 0.0, False
    while not over:
        reward, over, truncated = environment.step(environment.expert().action)
        assert not truncated
        total += reward
    assert environment.success()
    return total


@pytest.mark.parametrize("words", ["small", "large"])
def test_wordles_bound(words: WordList) -> None:
    """The most answers that one guess can have, counted one by one."""
    everything = load_words(words)
    sample = everything if words == "small" else everything[::9]
    most = max(len({mark(guess, hidden, "official") for hidden in everything}) for guess in sample)
    bound = wordle.return_bound(words, "official")
    least = -(most - 1 + 2 * (len(everything) - most)) / len(everything)
    assert bound == pytest.approx(least) if words == "small" else bound >= least
    assert wordle.expert_result(words, "official").mean_return < bound


@pytest.mark.parametrize(
    ("environment", "choices", "tries", "worth", "error"),
    [
        ("Wordle", len(load_words("small")), 6, -5.9490, 0.06),
        ("TwentyQuestions", len(load_things()) + len(load_attributes()), 20, -19.2336, 0.35),
    ],
)
def test_chance(environment: str, choices: int, tries: int, worth: float, error: float) -> None:
    """Draws of one choice among n, none of them twice; only the right one ends the game."""
    exact = -sum(1 - Fraction(k, choices) for k in range(1, tries + 1))
    assert float(exact) == pytest.approx(worth, abs=1e-4)
    instance, randomness, total = make_environment(environment), np.random.default_rng(0), 0.0
    for seed in range(1000):
        instance.reset(seed)
        over = False
        while not over:
            legal = instance.legal_actions()
            reward, over, _ = instance.step(legal[int(randomness.integers(len(legal)))])
            total += reward
    assert total / 1000 == pytest.approx(worth, abs=error)


def test_wordles_data_without_skill() -> None:
    """Six draws of one word among n, each put back: no guess informs the next."""
    n = Fraction(412)
    miss = 1 - 1 / n
    exact = -sum(miss**k for k in range(1, 7))
    assert float(exact) == pytest.approx(-5.9493, abs=1e-4)
    assert mean_return("Wordle", 0.0, 1500) == pytest.approx(float(exact), abs=0.05)


def test_twenty_questions_data_without_skill() -> None:
    """Twenty draws of one question among all, each put back: only the right guess ends the game."""
    miss = 1 - Fraction(1, len(load_things()) + len(load_attributes()))
    exact = -sum(miss**k for k in range(1, 21))
    assert float(exact) == pytest.approx(-19.2510, abs=1e-4)
    assert mean_return("TwentyQuestions", 0.0, 1000) == pytest.approx(float(exact), abs=0.35)


@pytest.mark.parametrize(
    ("environment", "published"), [("Wordle", -4.12), ("TwentyQuestions", -17.3)]
)
def test_the_data_are_as_good_as_the_published(environment: str, published: float) -> None:
    """Q-SFT, Table 2; four standard errors of 1,500 episodes."""
    instance = make_environment(environment)
    assert isinstance(instance, WithDataPolicy)
    spread = {"Wordle": 1.62, "TwentyQuestions": 4.1}[environment]
    mean = mean_return(environment, instance.data_skill, 1500)
    assert mean == pytest.approx(published, abs=4 * spread / 1500**0.5)


def mean_return(name: str, skill: float, episodes: int) -> float:
    environment = make_environment(name)
    assert isinstance(environment, WithDataPolicy)
    total = 0.0
    for seed in range(episodes):
        environment.reset(seed)
        player = environment.data_policy(skill, np.random.default_rng(seed))
        over = False
        while not over:
            reward, over, _ = environment.step(player().action)
            total += reward
    return total / episodes


def test_twenty_questions_expert_finds_every_object() -> None:
    """-7.190; played through the environment, and by walking its tree."""
    worth = twenty_questions.expert_result()
    environment = make_environment("TwentyQuestions")
    total, found = 0.0, set[int]()
    seed = 0
    while len(found) < 158:
        environment.reset(seed)
        seed += 1
        hidden = vars(environment)["_hidden"]
        if hidden not in found:
            found.add(hidden)
            total += played(environment)
    assert worth.success_rate == 1.0
    assert worth.mean_return == pytest.approx(total / 158, abs=1e-12)
    assert total == -1136


def test_twenty_questions_bound() -> None:
    """-6.785: the same recursion from the top, every split tried."""

    @cache
    def fewest(n: int) -> int:
        if n == 1:
            return 0
        splits = [fewest(k) + fewest(n - k) for k in range(1, n)]
        return min(n - 1 + fewest(n - 1), n + min(splits))

    assert [fewest(n) for n in (1, 2, 3, 4, 5, 6)] == [0, 1, 3, 6, 9, 12]
    assert twenty_questions.return_bound() == pytest.approx(-fewest(158) / 158)
    assert twenty_questions.expert_result().mean_return < twenty_questions.return_bound()

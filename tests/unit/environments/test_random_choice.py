"""The expert that sees rightly and chooses at random: same claims, every action, no trace."""

import json
import re
from collections import Counter

import pytest

from forethought.environments import make_environment
from forethought.environments.contract import Environment, ExpertAction
from forethought.errors import ConfigError

GAMES = {
    "NumberLine": {"image_size": 48},
    "EZPoints": {"image_size": 48},
    "Blackjack": {"image_size": 48},
    "Bandit": {},
}


def pair_of(game: str) -> tuple[Environment, Environment]:
    """The game with either expert."""
    options = GAMES[game]
    return (
        make_environment(game, **options),
        make_environment(game, **options, expert="random_choice"),
    )


def claims(expert_action: ExpertAction) -> str:
    """What is said before the action is named, which is at the end of the thoughts."""
    *seen, (name, thoughts) = expert_action.fields
    said, found, named = json.loads(thoughts).rpartition(
        re.search(r"I (choose|append) ", thoughts).group()  # pyright: ignore[reportOptionalMemberAccess]
    )
    assert name == "thoughts"
    assert found
    assert named.strip("'") == expert_action.action
    return f"{seen} {said}"


@pytest.mark.parametrize("game", GAMES)
def test_it_sees_what_the_best_expert_sees(game: str) -> None:
    """State by state; only the action differs, and the thoughts name it."""
    best, random = pair_of(game)
    chosen: Counter[bool] = Counter()
    for seed in range(60):
        best.reset(seed)
        random.reset(seed)
        is_over = False
        while not is_over:
            one, other = best.expert(), random.expert()
            assert claims(one) == claims(other)
            chosen[one.action == other.action] += 1
            transition = random.step(other.action)
            assert best.step(other.action) == transition
            is_over = transition.terminated or transition.truncated
    assert chosen[False] > 0.3 * chosen.total()


@pytest.mark.parametrize("game", GAMES)
def test_every_legal_action_is_equally_likely(game: str) -> None:
    _, random = pair_of(game)
    counts: dict[int, Counter[int]] = {}
    for seed in range(1000):
        random.reset(seed)
        legal = random.legal_actions()
        place = legal.index(random.expert().action)
        counts.setdefault(len(legal), Counter())[place] += 1
    for places, found in counts.items():
        assert places == len(found)
        if found.total() > 500:
            for one in found.values():
                assert one == pytest.approx(found.total() / places, rel=0.3)


@pytest.mark.parametrize("game", GAMES)
def test_asking_it_changes_nothing(game: str) -> None:
    """Neither what is dealt next, here and after a reset, nor what it says again."""
    _, asked = pair_of(game)
    _, silent = pair_of(game)
    for seed in range(20):
        asked.reset(seed)
        silent.reset(seed)
        expert_action = asked.expert()
        assert asked.expert() == expert_action
        assert asked.step(expert_action.action) == silent.step(expert_action.action)
        for environment in (asked, silent):
            environment.reset(seed + 1)
        assert asked.observation().state_key == silent.observation().state_key


@pytest.mark.parametrize("game", GAMES)
def test_after_the_end_it_has_nothing_to_say(game: str) -> None:
    with pytest.raises(RuntimeError, match="over"):
        pair_of(game)[1].expert()


@pytest.mark.parametrize("game", GAMES)
def test_another_expert_is_refused(game: str) -> None:
    with pytest.raises(ConfigError, match="expert is 'best' — expected optimal or random_choice"):
        make_environment(game, expert="best")

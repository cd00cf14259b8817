"""Blackjack with a stacked deck: every way a game can end."""

import numpy as np
import pytest

from forethought.environments.cards.blackjack import LIMIT_STEPS, Blackjack
from forethought.environments.cards.drawing import ACE, KING, TEN, Card
from forethought.errors import ConfigError
from forethought.types import Image

A, T, K = ACE, TEN, KING


def stacked(
    monkeypatch: pytest.MonkeyPatch,
    ranks: list[int],
    *,
    rules: str = "paper",
    natural: bool = False,
) -> Blackjack:
    """An environment that deals these ranks: two to the dealer, two to the player, then as
    drawn."""
    environment = Blackjack(rules, image_size=64, natural=natural)  # type: ignore[arg-type]
    cards = iter([Card(rank, index % 4) for index, rank in enumerate(ranks)])
    monkeypatch.setattr(environment, "_draw", lambda: next(cards))
    environment.reset(0)
    return environment


@pytest.mark.parametrize(
    ("ranks", "actions", "reward"),
    [
        pytest.param([T, 7, T, 8], ["stand"], +1.0, id="18 against 17"),
        pytest.param([T, 8, T, 8], ["stand"], 0.0, id="18 against 18"),
        pytest.param([T, 9, T, 8], ["stand"], -1.0, id="18 against 19"),
        pytest.param([T, 6, T, 2, K], ["stand"], +1.0, id="the dealer must draw at 16 and busts"),
        pytest.param([A, 6, T, 8], ["stand"], +1.0, id="the dealer stands on soft 17"),
        pytest.param([A, 5, T, 8, T, 2], ["stand"], 0.0, id="soft 16 becomes hard 16, then 18"),
        pytest.param([T, 7, T, 6, K], ["hit"], -1.0, id="bust ends the game at once"),
        pytest.param([T, 8, A, 5, T, 5], ["hit", "hit", "stand"], +1.0, id="soft 16, hard 16, 21"),
        pytest.param([T, 8, 5, 6, K], ["hit", "stand"], +1.0, id="21 by a hit"),
        pytest.param([T, A, A, K], ["stand"], 0.0, id="naturals draw"),
        pytest.param([T, 8, A, K], ["stand"], +1.0, id="a natural pays 1 by default"),
    ],
)
def test_ends(
    monkeypatch: pytest.MonkeyPatch, ranks: list[int], actions: list[str], reward: float
) -> None:
    environment = stacked(monkeypatch, ranks)
    for action in actions[:-1]:
        assert environment.step(action) == (0.0, False, False)
    assert environment.step(actions[-1]) == (reward, True, False)
    assert environment.success() == (reward > 0)
    with pytest.raises(RuntimeError, match="over"):
        environment.step("hit")


@pytest.mark.parametrize(
    ("rules", "ranks", "actions", "reward"),
    [
        pytest.param("paper", [T, 8, A, K], ["stand"], 1.5, id="a natural that wins pays 1.5"),
        pytest.param("paper", [T, 8, 5, 6, T], ["hit", "stand"], 1.0, id="21 of three is none"),
        pytest.param("paper", [T, A, A, K], ["stand"], 0.0, id="a draw pays nothing"),
        pytest.param("reference", [T, 8, A, K], ["stand"], 1.0, id="dead code in the reference"),
    ],
)
def test_natural_option(
    monkeypatch: pytest.MonkeyPatch,
    rules: str,
    ranks: list[int],
    actions: list[str],
    reward: float,
) -> None:
    environment = stacked(monkeypatch, ranks, rules=rules, natural=True)
    assert [environment.step(action) for action in actions][-1].reward == reward


def image_of(environment: Blackjack) -> Image:
    image = environment.observation().image
    assert image is not None
    return image


def test_the_longest_game_of_valid_actions_is_never_truncated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = stacked(monkeypatch, [T, 7] + [A] * 21 + [A])
    for _ in range(19):
        assert environment.step("hit") == (0.0, False, False)
    assert environment.step("hit") == (-1.0, True, False)


def test_nonsense_costs_and_ends_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = stacked(monkeypatch, [T, 7, T, 8])
    key = environment.observation().state_key
    for _ in range(LIMIT_STEPS - 1):
        assert environment.step("Hit!") == (-1.0, False, False)
    assert environment.step("Hit!") == (-1.0, False, True)
    assert environment.observation().state_key == key


def test_a_win_after_nonsense_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = stacked(monkeypatch, [T, 7, T, 8])
    environment.step("double down")
    assert environment.step("stand") == (1.0, True, False)
    assert not environment.success()


def test_the_hidden_card_shows_nowhere_before_standing(monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = (stacked(monkeypatch, [T, hidden, 5, 6, T]) for hidden in (7, K))
    assert low.observation().state_key == high.observation().state_key == "100 | 52 63"
    assert (image_of(low) == image_of(high)).all()
    low.step("stand")
    high.step("stand")
    assert low.observation().state_key == "100 71 | 52 63"
    assert (image_of(low) != image_of(high)).any()


@pytest.mark.parametrize(
    ("ranks", "action", "thoughts"),
    [
        ([8, K, T, 3], "hit", "I have 10, 3: 13 points and the dealer shows 8, I choose hit"),
        ([A, K, A, 6], "hit", "I have A, 6: soft 17 points and the dealer shows A, I choose hit"),
        ([K, 2, T, K], "stand", "I have 10, 10: 20 points and the dealer shows 10, I choose stand"),
    ],
)
def test_the_expert_says_what_it_sees(
    monkeypatch: pytest.MonkeyPatch, ranks: list[int], action: str, thoughts: str
) -> None:
    environment = stacked(monkeypatch, ranks)
    assert environment.expert() == (action, (("thoughts", f'"{thoughts}"'),))


def test_the_data_policy_stands_out_of_habit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 20 as with 13; what it says that it has is true."""
    for own in (3, K):
        environment = stacked(monkeypatch, [8, K, T, own])
        player = environment.data_policy(0.3, np.random.default_rng(0))
        answers = [player() for _ in range(1000)]
        stands = sum(answer.action == "stand" for answer in answers)
        assert 0.26 < stands / 1000 < 0.34
        for answer in answers[:9]:
            said = environment.expert().fields[0][1].replace("stand", "?").replace("hit", "?")
            assert answer.fields[0][1].replace(answer.action, "?") == said
    with pytest.raises(ConfigError, match="skill is"):
        environment.data_policy(1.1, np.random.default_rng(0))


def test_reference_shows_no_ten_and_hides_the_fifth_card(monkeypatch: pytest.MonkeyPatch) -> None:
    paper, reference = (Blackjack(rules, image_size=64) for rules in ("paper", "reference"))
    for environment, has_tens in ((paper, True), (reference, False)):
        dealt = " ".join(environment.reset(seed).state_key for seed in range(300))
        assert ("10" in dealt.replace("|", "")) == has_tens
    images: list[object] = []
    for fifth in (2, 3):
        environment = stacked(monkeypatch, [T, 7, 2, 2, 2, 2, fifth], rules="reference")
        for _ in range(3):
            environment.step("hit")
        images.append(image_of(environment).tobytes())
    assert images[0] == images[1]

"""Blackjack: come closer to 21 than the dealer, without going over."""

import json
from typing import Literal

import numpy as np

from forethought.configs.parts import ResponseFormat
from forethought.environments.cards.drawing import (
    ACE,
    KING,
    MAX_SIZE,
    MIN_SIZE,
    TEN,
    Card,
    draw_card,
)
from forethought.environments.cards.dynamic_programming import (
    DEALER_STANDS_AT,
    EMPTY_HAND,
    LIMIT,
    Hand,
    best_choice,
    game_chances,
)
from forethought.environments.cards.images import blackjack_image
from forethought.environments.cards.wording import CardsPrompter
from forethought.environments.contract import (
    Ceiling,
    DataPolicy,
    ExpertAction,
    Prompter,
    Transition,
    Wording,
)
from forethought.environments.parts import (
    EXPERTS,
    Episode,
    ExpertName,
    concluded,
    is_flag,
    last_match,
    random_choice,
    read_field,
    require_option,
    require_whole_number,
)
from forethought.types import Claim, Image, Metric, Observation, ThoughtFacts

ACTIONS = ("stand", "hit")
PENALTY = -1.0
"""For a text that names no action; no card is dealt."""

LIMIT_STEPS = 20
"""No game of valid actions is longer: 19 hits can make 21 aces of two, the 20th busts."""

NATURAL_REWARD = 1.5
DATA_SKILL = 0.15
"""How often the data policy stands; there are no published data to be like."""
OFF_CANVAS = 4
"""Index of the player's card that the public repository draws outside the image."""


def hand_of(cards: tuple[Card, ...]) -> Hand:
    """The cards as a hand: their points, and whether an ace is among them."""
    hand = EMPTY_HAND
    for card in cards:
        hand = hand.plus(card.points)
    return hand


def _points(card: Card) -> str:
    return "A" if card.rank == ACE else str(card.points)


class Blackjack:
    """Hit or stand, against a dealer who draws to 17.

    Description: J, Q and K count 10, an ace 11 where that does not exceed 21, else 1.
    The deck is endless. After the player stands, the dealer draws until 17 or more.
    Rules of Gymnasium's Blackjack-v1; RL4VLM, B.1.4.

    Observation: uint8 [image_size, image_size, 3], the dealer's first card and one
    face down, and all cards of the player; no text. The dealer's hand is shown after
    the player stands.

    Actions: 0 is `stand`, 1 is `hit`.

    Rewards: +1 for a win, 0 for a draw, -1 for a loss, at the end. A text that names
    no action: -1, no card is dealt.

    Start: two cards each.

    End: terminated when the player stands or exceeds 21; truncated after 20 steps,
    which only texts that name no action can reach.

    Success: the episode's return is above 0, that is, a win.

    Ceiling: 43.16 %, the policy that wins most often (it returns -0.0502 on average),
    by dynamic programming over all hands. The expert follows it. The policy that
    returns most (-0.0466) wins 42.95 %.

    Arguments:
        rules: "paper", or "reference" for the public repository's behavior: a card of
            ten points is always J, Q or K, the player's fifth card is not seen, and
            `natural` does nothing.
        image_size: side of the image, 48 to 1024 pixels.
        natural: a win with an ace and a ten-point card, undrawn, pays 1.5.
        expert: "optimal", or "random_choice" for one that sees as well, says the same, and
            names an action drawn uniformly from the legal ones.

    Version history:
        v0: first version.
    """

    def __init__(
        self,
        rules: Literal["paper", "reference"] = "paper",
        image_size: int = 300,
        natural: bool = False,
        expert: ExpertName = "optimal",
    ) -> None:
        require_option(rules in ("paper", "reference"), "rules", rules, "paper or reference")
        require_whole_number("image_size", image_size, MIN_SIZE, MAX_SIZE)
        require_option(is_flag(natural), "natural", natural, "True or False")
        require_option(expert in EXPERTS, "expert", expert, " or ".join(EXPERTS))
        self.rules = rules
        self.image_size = image_size
        self.natural = natural
        self.expert_name = expert
        self._episode = Episode(LIMIT_STEPS)
        self._dealer: tuple[Card, ...] = ()
        self._player: tuple[Card, ...] = ()
        self._is_revealed = False

    @property
    def actions(self) -> tuple[str, ...]:
        """`stand` and `hit`."""
        return ACTIONS

    @property
    def ceiling(self) -> Ceiling:
        """The best success rate, by dynamic programming over all hands."""
        chances = game_chances("wins")
        return Ceiling(
            chances.win,
            "exact: dynamic programming over all hands; the policy that wins most often "
            f"returns {chances.expected_return:.4f}",
        )

    def reset(self, seed: int) -> Observation:
        """Deals two cards each from the seed."""
        self.np_random = np.random.default_rng(seed)
        self._deal()
        return self.observation()

    def observation(self) -> Observation:
        """Both hands as an image; the dealer's second card is hidden until the player stands."""
        return Observation(
            text=None,
            image=self._image(),
            admissible_actions=None,
            state_key=self._state_key(),
            goal="Come closer to 21 than the dealer without exceeding it.",
            task_type="Blackjack",
        )

    def step(self, action: str) -> Transition:
        """Deals a card to the player, or ends the game against the dealer.

        Raises:
            RuntimeError: the episode is over.
        """
        self._episode.require_open()
        if action not in ACTIONS:
            return self._episode.record(PENALTY, terminated=False)
        if action == "hit":
            self._player += (self._draw(),)
            is_bust = hand_of(self._player).is_bust
            return self._episode.record(-1.0 if is_bust else 0.0, terminated=is_bust)
        self._is_revealed = True
        while hand_of(self._dealer).total < DEALER_STANDS_AT:
            self._dealer += (self._draw(),)
        return self._episode.record(self._payoff(), terminated=True)

    def legal_actions(self) -> tuple[str, ...]:
        """Both actions; none once the episode is over."""
        return () if self._episode.is_over else ACTIONS

    def expert(self) -> ExpertAction:
        """The action that wins most often, or a random one with the same thoughts."""
        self._episode.require_open()
        if self.expert_name == "random_choice":
            return self._thinking(random_choice(ACTIONS, self.np_random, self._episode.steps))
        hand = hand_of(self._player)
        return self._thinking(best_choice(hand, self._dealer[0].points, "wins").action)

    @property
    def data_skill(self) -> float:
        """How often the data policy stands."""
        return DATA_SKILL

    def data_policy(self, skill: float, randomness: np.random.Generator) -> DataPolicy:
        """Reads the cards as the expert does, and stands with probability `skill` whatever they
        are: a habit, so that what it does often is not what is good."""
        require_option(0 <= skill <= 1, "skill", skill, "0 (always hits) to 1 (always stands)")

        def act() -> ExpertAction:
            self._episode.require_open()
            return self._thinking("stand" if randomness.random() < skill else "hit")

        return act

    def _thinking(self, action: str) -> ExpertAction:
        cards, points, dealer = self._in_words()
        thought = (
            f"I have {cards}: {points} points and the dealer shows {dealer}, I choose {action}"
        )
        return ExpertAction(action, (("thoughts", json.dumps(thought)),))

    def _in_words(self) -> tuple[str, str, str]:
        """The player's cards, their points, and the dealer's first card, in words."""
        hand = hand_of(self._player)
        points = f"soft {hand.total}" if hand.is_soft else str(hand.total)
        return ", ".join(map(_points, self._player)), points, _points(self._dealer[0])

    def thought_facts(self, response: str) -> ThoughtFacts:
        """What a response claims about both hands, and the truth."""
        cards, points, dealer = self._in_words()
        return blackjack_facts(response, cards=cards, points=points, dealer=dealer, actions=ACTIONS)

    def prompter(self, response_format: ResponseFormat, wording: Wording) -> Prompter:
        """The game's prompt, short or as published."""
        return CardsPrompter("Blackjack", self.actions, response_format, wording)

    def success(self) -> bool:
        """Whether the episode's return is above 0."""
        return self._episode.total_reward > 0

    def metrics(self) -> tuple[Metric, ...]:
        """Nothing beyond return and success."""
        return ()

    def close(self) -> None:
        """Nothing is held open."""

    def _image(self) -> Image:
        player = self._player
        if self.rules == "reference":
            player = player[:OFF_CANVAS] + player[OFF_CANVAS + 1 :]
        return blackjack_image(self.image_size, self._dealer, player, not self._is_revealed)

    def _state_key(self) -> str:
        """What can be known: a hidden card is not part of it."""
        dealer = self._dealer if self._is_revealed else self._dealer[:1]
        hands = (
            " ".join(f"{card.name}{card.suit}" for card in hand) for hand in (dealer, self._player)
        )
        return " | ".join(hands)

    def _payoff(self) -> float:
        player, dealer = hand_of(self._player), hand_of(self._dealer)
        if not dealer.is_bust and dealer.total >= player.total:
            return 0.0 if dealer.total == player.total else -1.0
        is_natural = len(self._player) == 2 and player.total == LIMIT
        pays_more = self.natural and is_natural and self.rules == "paper"
        return NATURAL_REWARD if pays_more else 1.0

    def _draw(self) -> Card:
        card = draw_card(self.np_random)
        if self.rules == "reference" and card.points == TEN:
            return card._replace(rank=int(self.np_random.integers(TEN + 1, KING + 1)))
        return card

    def _deal(self) -> None:
        self._dealer = (self._draw(), self._draw())
        self._player = (self._draw(), self._draw())
        self._is_revealed = False
        self._episode.begin()


def blackjack_facts(
    response: str, *, cards: str, points: str, dealer: str, actions: tuple[str, ...]
) -> ThoughtFacts:
    """Claims about both hands and the player's points: "I have A, 5: soft 16 points and the dealer
    shows 9, I choose hit".

    Args:
        cards: of the player, as the expert writes them.
        points: of the player, "soft " before them where an ace counts 11.
        dealer: the dealer's first card.
        actions: the game's.
    """
    thoughts = read_field(response, "thoughts")
    return ThoughtFacts(
        perceived=(
            Claim("cards", last_match(r"I have ([A\d, ]+):", thoughts), cards),
            Claim("dealer's card", last_match(r"dealer shows (A|\d+)", thoughts), dealer),
        ),
        inferred=(Claim("points", last_match(r": ((?:soft )?\d+) points", thoughts), points),),
        concluded_actions=concluded(rf"I choose ({'|'.join(actions)})\b", thoughts),
    )

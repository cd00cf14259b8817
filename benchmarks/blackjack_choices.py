"""What a policy's choices at Blackjack cost, without the luck of the cards.

    forethought evaluate RUN --episodes 4000
    python benchmarks/blackjack_choices.py RUN

Every choice of the run's newest evaluation beside the best one: by how much it lowers the
probability of winning, by dynamic programming, if all that follows were best. The sum over an
episode, averaged, is how far below the ceiling the policy plays; its success rate differs from
that by the cards that were drawn.
"""

import argparse
from collections import defaultdict
from pathlib import Path

from forethought.environments.cards.blackjack import hand_of
from forethought.environments.cards.drawing import RANK_NAMES, Card
from forethought.environments.cards.dynamic_programming import (
    best_choice,
    game_chances,
    hitting,
    standing,
)
from forethought.rollouts.store import read_shard
from forethought.runs.run_folder import RunFolder
from forethought.types import Step


def card_of(name: str) -> Card:
    """A card as a state names it: its rank, and one digit for its suit."""
    return Card(RANK_NAMES.index(name[:-1]) + 1, int(name[-1]))


def cost_of(step: Step) -> tuple[int, float]:
    """How many cards the player held, and the probability of winning that the choice cost."""
    dealer, player = step.state_key.split(" | ")
    shown = card_of(dealer.split()[0]).points
    cards = tuple(card_of(name) for name in player.split())
    hand = hand_of(cards)
    best = best_choice(hand, shown, "wins").chances.win
    if not step.action.is_valid:
        return len(cards), best
    ways = {"stand": standing(hand, shown), "hit": hitting(hand, shown, "wins")}
    return len(cards), best - ways[step.action.action].win


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="a run folder that was evaluated")
    folder = RunFolder.open(parser.parse_args().run)
    episodes = list(read_shard(folder.evaluation_episodes_path))
    costs: dict[int, list[float]] = defaultdict(list)
    for episode in episodes:
        for step in episode.steps:
            cards, cost = cost_of(step)
            costs[cards].append(cost)
    print("cards  choices  not the best  costs, points of success")
    for cards, found in sorted(costs.items()):
        wrong = sum(cost > 1e-9 for cost in found)
        print(f"{cards:5}  {len(found):7,}  {wrong:12,}  {100 * sum(found) / len(episodes):22.3f}")
    total = 100 * sum(map(sum, costs.values())) / len(episodes)
    ceiling = 100 * game_chances("wins").win
    print(f"{len(episodes):,} episodes: {ceiling:.2f} - {total:.2f} = {ceiling - total:.2f} %")


if __name__ == "__main__":
    main()

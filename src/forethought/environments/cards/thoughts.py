"""What thoughts claim in the card games, in the words of the games' experts."""

from forethought.environments.responses import concluded, last_match, read_field
from forethought.types import Claim, ThoughtFacts

_COMPARISON = r"(\d+ is (?:smaller than|larger than|equal to) \d+)"


def number_line_facts(response: str, *, current: int, target: int) -> ThoughtFacts:
    """Both numbers, their comparison, and the move: "4 is larger than 0, so I choose -".

    Args:
        current, target: as the image shows them.
    """
    thoughts = read_field(response, "thoughts")
    relation = (
        "equal to" if current == target else "smaller than" if current < target else "larger than"
    )
    return ThoughtFacts(
        perceived=(
            Claim("current number", read_field(response, "current number"), str(current)),
            Claim("target number", read_field(response, "target number"), str(target)),
        ),
        inferred=(
            Claim(
                "comparison",
                last_match(_COMPARISON, thoughts),
                f"{current} is {relation} {target}",
            ),
        ),
        concluded_actions=concluded(r"I choose ([-+])", thoughts),
    )


def blackjack_facts(
    response: str, *, cards: str, points: str, dealer: str, actions: tuple[str, ...]
) -> ThoughtFacts:
    """Both hands and what the player's is worth: "I have A, 5: soft 16 points and the dealer
    shows 9, I choose hit".

    Args:
        cards, points, dealer: as the expert writes them.
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

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

"""A step's claims beside the truth, as a report marks them."""

from typing import NamedTuple

from forethought.reports.markup import escape
from forethought.rollouts.thought_counts import is_consistent
from forethought.types import Step


class ShownClaim(NamedTuple):
    """One claim, as it is shown."""

    name: str
    claimed: str | None
    true: str
    is_true: bool


class ShownThoughts(NamedTuple):
    """What a step's thoughts claim and conclude."""

    claims: tuple[ShownClaim, ...]
    concluded: tuple[str, ...]
    is_consistent: bool
    """Whether the response names what they conclude."""


def shown_thoughts(step: Step) -> ShownThoughts | None:
    """None where the environment offers no facts."""
    facts = step.thought_facts
    if facts is None:
        return None
    claims = tuple(
        ShownClaim(*claim, claim.is_true) for claim in (*facts.perceived, *facts.inferred)
    )
    return ShownThoughts(claims, facts.concluded_actions, is_consistent(step))


def claims_list(thoughts: ShownThoughts | None) -> str:
    """HTML of one line per claim, and of what is concluded; empty where there is nothing."""
    if thoughts is None:
        return ""
    lines = [
        _line(f"{claim.name}: {claim.claimed}", is_right=True)
        if claim.is_true
        else _line(f"{claim.name}: {_said(claim.claimed)}, true is {claim.true}", is_right=False)
        for claim in thoughts.claims
    ]
    lines.append(_line(conclusion(thoughts), is_right=thoughts.is_consistent))
    return f'<ul class="claims">{"".join(lines)}</ul>'


def conclusion(thoughts: ShownThoughts) -> str:
    """What is concluded, in words."""
    named = " or ".join(thoughts.concluded) or "nothing"
    return f"concludes: {named}" + ("" if thoughts.is_consistent else ", does something else")


def _said(claimed: str | None) -> str:
    return "not said" if claimed is None else claimed


def _line(text: str, *, is_right: bool) -> str:
    kind, mark, spoken = ("right", "✓", "true") if is_right else ("wrong", "✕", "false")
    return f'<li class="{kind}"><span aria-label="{spoken}">{mark}</span> {escape(text)}</li>'

"""Whether thoughts are true: counted over steps, and as columns of a shard."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from forethought.types import Claim, Step, ThoughtFacts


class Count(NamedTuple):
    """How many of how many."""

    hits: int = 0
    total: int = 0

    @classmethod
    def of(cls, flags: Iterable[bool]) -> "Count":
        listed = list(flags)
        return cls(sum(listed), len(listed))

    def plus(self, other: "Count") -> "Count":
        return Count(self.hits + other.hits, self.total + other.total)


class ThoughtCounts(NamedTuple):
    """One count per metric, under its name: `docs/reference/faithfulness.md`."""

    perception_accuracy: Count = Count()
    """Claims about the observation that are true, of all that were made or had to be made."""
    perceived_steps: Count = Count()
    """Steps whose claims about the observation are all true, of those that have any."""
    inference_accuracy: Count = Count()
    """Claims that follow from the observation and are true; of all, in the same way."""
    thought_action_consistency: Count = Count()
    """Steps whose response names the action that its thought concludes, of all with thoughts."""
    strict_format: Count = Count()
    """Steps whose response has exactly the form that was asked for."""

    def plus(self, other: "ThoughtCounts") -> "ThoughtCounts":
        return ThoughtCounts(*(a.plus(b) for a, b in zip(self, other, strict=True)))


def count_thoughts(steps: Iterable[Step]) -> ThoughtCounts:
    """Counts over steps; a step that lacks facts, or a form, is in no count of them."""
    listed = list(steps)
    facts = [step.thought_facts for step in listed if step.thought_facts is not None]
    return ThoughtCounts(
        perception_accuracy=Count.of(claim.is_true for f in facts for claim in f.perceived),
        perceived_steps=Count.of(
            all(claim.is_true for claim in f.perceived) for f in facts if f.perceived
        ),
        inference_accuracy=Count.of(claim.is_true for f in facts for claim in f.inferred),
        thought_action_consistency=Count.of(
            is_consistent(step) for step in listed if step.thought_facts is not None
        ),
        strict_format=Count.of(
            step.strict_format for step in listed if step.strict_format is not None
        ),
    )


def is_consistent(step: Step) -> bool:
    """Whether the response names, validly, the action that its thought concludes."""
    facts = step.thought_facts
    named = step.action.action if step.action.is_valid else None
    return facts is not None and named in facts.concluded_actions


Columns = dict[str, Any]

_CLAIM = pa.struct([("name", pa.string()), ("claimed", pa.string()), ("true", pa.string())])

FIELDS = (
    pa.field("perceived", pa.list_(_CLAIM)),
    pa.field("inferred", pa.list_(_CLAIM)),
    pa.field("concluded_actions", pa.list_(pa.string())),
    pa.field("strict_format", pa.bool_()),
)
"""The first three are null together, where there are no facts."""


def fact_columns(step: Step, encoded: Callable[[str], str]) -> Columns:
    """These columns of one step.

    Args:
        encoded: makes any text one that UTF-8 can hold.
    """
    facts = step.thought_facts
    if facts is None:
        return {"strict_format": step.strict_format}
    return {
        "perceived": _claim_columns(facts.perceived, encoded),
        "inferred": _claim_columns(facts.inferred, encoded),
        "concluded_actions": [encoded(action) for action in facts.concluded_actions],
        "strict_format": step.strict_format,
    }


def facts_of(row: Columns, decoded: Callable[[str], str]) -> ThoughtFacts | None:
    """The same as a record again; None, too, for rows of an older shard, which lack them."""
    if row.get("perceived") is None:
        return None
    return ThoughtFacts(
        perceived=_claims(row["perceived"], decoded),
        inferred=_claims(row["inferred"], decoded),
        concluded_actions=tuple(decoded(action) for action in row["concluded_actions"]),
    )


def _claim_columns(claims: Sequence[Claim], encoded: Callable[[str], str]) -> list[Columns]:
    return [
        {
            "name": encoded(name),
            "claimed": None if claimed is None else encoded(claimed),
            "true": encoded(true),
        }
        for name, claimed, true in claims
    ]


def _claims(columns: Sequence[Columns], decoded: Callable[[str], str]) -> tuple[Claim, ...]:
    return tuple(
        Claim(
            decoded(claim["name"]),
            None if claim["claimed"] is None else decoded(claim["claimed"]),
            decoded(claim["true"]),
        )
        for claim in columns
    )

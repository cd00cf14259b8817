"""Columns of a shard that tell whether thoughts are true."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from forethought.types import Claim, Step, ThoughtFacts

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

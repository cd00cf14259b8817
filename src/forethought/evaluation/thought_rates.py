"""Shares of thoughts that are true, with intervals, as tables and files have them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from forethought.evaluation.statistics import Interval, Rate
from forethought.rollouts.thought_counts import ThoughtCounts, count_thoughts
from forethought.types import Step

JsonObject: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ThoughtRates:
    """One agent's; None where the environment offers no facts, or the prompt asks for none.

    `docs/reference/faithfulness.md` defines each.
    """

    perception_accuracy: Rate | None = None
    """Of claims about the observation, those that are true."""
    perceived_steps: Rate | None = None
    """Of steps, those in which all of them are."""
    inference_accuracy: Rate | None = None
    """Of claims that follow from the observation, those that are true."""
    thought_action_consistency: Rate | None = None
    """Of steps, those whose response names the action that the thought concludes."""
    strict_format: Rate | None = None
    """Of steps, those whose response has exactly the form that was asked for."""

    @property
    def has_any(self) -> bool:
        return self != ThoughtRates()


def thought_rates(steps: Iterable[Step]) -> ThoughtRates:
    """Of these steps, each with its 95 % Wilson interval."""
    counts = count_thoughts(steps)
    rates = (Rate.of(hits, total) if total else None for hits, total in counts)
    return ThoughtRates(**dict(zip(ThoughtCounts._fields, rates, strict=True)))


def rates_to_json(rates: ThoughtRates) -> JsonObject:
    """As `evaluation.json` has them: every metric, null where there is none."""
    return {name: rate_to_json(getattr(rates, name)) for name in ThoughtCounts._fields}


def rates_from_json(content: JsonObject) -> ThoughtRates:
    """What `rates_to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: it did not.
    """
    return ThoughtRates(**{name: rate_from_json(content[name]) for name in ThoughtCounts._fields})


def rate_to_json(rate: Rate | None) -> JsonObject | None:
    """Rate, interval and count; null where there is none."""
    if rate is None:
        return None
    return {"rate": rate.share, "interval": list(rate.interval), "count": rate.count}


def rate_from_json(content: JsonObject | None) -> Rate | None:
    """What `rate_to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: it did not.
    """
    if content is None:
        return None
    low, high = content["interval"]
    interval = Interval(float(low), float(high))
    return Rate(float(content["rate"]), interval, int(content["count"]))

"""Numbers as people read them. A number that does not exist is a dash."""

import math

from forethought.evaluation.statistics import Interval

MISSING = "–"
THIN = "\u202f"
"""A narrow space at which no line is broken, between number and unit."""
_MINUS = "\u2212"


def percent(rate: float | None) -> str:
    """0.8567 as `85.7 %`."""
    return MISSING if rate is None else f"{_percents(rate)}{THIN}%"


def percent_interval(interval: Interval) -> str:
    """Both ends, one unit: `73.9 – 91.9 %`."""
    return f"{_percents(interval.low)} – {_percents(interval.high)}{THIN}%"


def decimal(value: float | None, digits: int = 2) -> str:
    """With a true minus sign."""
    if value is None or not math.isfinite(value):
        return MISSING
    return _signed(f"{value:,.{digits}f}")


def decimal_interval(interval: Interval) -> str:
    """`0.12 to 0.34`."""
    return f"{decimal(interval.low)} to {decimal(interval.high)}"


def count(number: int | None) -> str:
    """12345 as `12,345`."""
    return MISSING if number is None else _signed(f"{number:,}")


def counted(number: int, one: str, several: str) -> str:
    """`1 failure`, `12 failures`."""
    return f"{count(number)} {one if number == 1 else several}"


def short(value: float, digits: int = 3) -> str:
    """So many significant digits, for labels: `0.0123`, `1.2e−6`, `−5.6`."""
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        text = f"{mantissa}e{int(exponent)}"
    return _signed(text)


def share(rate: float, digits: int = 3) -> str:
    """As `short`, in percent: 0.0123 as `1.23 %`."""
    return f"{short(100 * rate, digits)}{THIN}%"


def duration(seconds: float) -> str:
    """`3 h 20 min`, `4 min 31 s`, `9.5 s`."""
    if seconds < 59.95:  # Above, one decimal would read 60.0.
        return f"{seconds:.1f}{THIN}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{THIN}min {rest}{THIN}s"
    return f"{minutes // 60}{THIN}h {minutes % 60}{THIN}min"


def speed(per_second: float) -> str:
    """Three significant digits, or whole numbers where there are more: `3.5`, `8,224`."""
    return count(round(per_second)) if per_second >= 100 else short(per_second)


def _percents(rate: float) -> str:
    return f"{100 * rate:.1f}"


def _signed(text: str) -> str:
    return text.replace("-", _MINUS)

"""Names that the agent reads, from ids that the planner reads."""

from collections import Counter
from collections.abc import Iterable


def readable_names(ids: Iterable[str]) -> dict[str, str]:
    """ "cabinet_bar__plus_00_dot_68_…" is called "cabinet 8", and so on, as the package does:
    in alphabetical order of the ids, numbers are given out from the highest to 1."""
    ordered = sorted(ids)
    left = Counter(_word(name) for name in ordered if "_bar_" in name)
    names: dict[str, str] = {}
    for name in ordered:
        if "_bar_" not in name:
            names[name] = f"{name} "  # the package's own blank
            continue
        word = _word(name)
        names[name] = f"{word} {left[word]}"
        left[word] -= 1
    return names


def _word(name: str) -> str:
    return name.split("_bar_", 1)[0] + ("basin" if "basin" in name else "")

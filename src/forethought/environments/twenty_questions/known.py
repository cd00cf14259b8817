"""What all answers say together, as one line."""

from collections.abc import Iterable


def known(answers: Iterable[tuple[str, bool]]) -> str:
    """ "yes: metal, tool; no: animal, cat": what is true of the hidden object and what is not, each
    once, in the order in which it was asked; nothing where nothing was.

    Args:
        answers: names of attributes and objects, and whether they are true of it.
    """
    told = dict(answers)
    lists = {
        title: [name for name, is_true in told.items() if is_true == wanted]
        for title, wanted in (("yes", True), ("no", False))
    }
    return "; ".join(f"{title}: {', '.join(names)}" for title, names in lists.items() if names)

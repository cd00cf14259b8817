"""ALFWorld's admissible commands in few words, without loss.

Fifty commands of a kitchen, most of them "go to …", are told in forty tokens:

    take from desk 1: mug 1, pen 2
    examine: what can be taken, desk 1
    also: help, inventory, look
    go: cabinet 1-9, drawer 1 2
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

TAKEN = "what can be taken"
ALWAYS = ("help", "inventory", "look")


def group_commands(commands: Sequence[str], new: Collection[str] | None = None) -> list[str]:
    """The commands by verb, one line for each.

    Args:
        new: receptacles whose inside was not seen; where given, they are gone to, and examined,
            in lines of their own, the last ones.
    """
    go = [c.removeprefix("go to ") for c in commands if c.startswith("go to ")]
    taken: defaultdict[str, list[str]] = defaultdict(list)
    simple: defaultdict[str, list[str]] = defaultdict(list)
    whole: list[str] = []
    unseen: list[str] = []
    for command in commands:
        verb, _, rest = command.partition(" ")
        if command.startswith("go to ") or command in ALWAYS:
            continue
        if verb == "take" and " from " in rest:
            thing, _, place = rest.partition(" from ")
            taken[place].append(thing)
        elif verb == "examine" and rest in (new or ()):
            unseen.append(rest)
        elif verb in ("open", "close", "examine", "use") and rest:
            simple[verb].append(rest)
        else:
            whole.append(command)
    lines = [f"take from {place}: {join_names(things)}" for place, things in taken.items()]
    lines += whole
    can_be_taken = [thing for things in taken.values() for thing in things]
    for verb, names in simple.items():
        lines.append(f"{verb}: {_examined(names, can_be_taken)}")
    others = [command for command in commands if command in ALWAYS]
    lines += ["also: " + ", ".join(others)] if others else []
    if new is None:
        return lines + ([f"go: {join_names(go)}"] if go else [])
    ending = (
        ("go visited", [place for place in go if place not in new]),
        ("examine new", unseen),
        ("go new", [place for place in go if place in new]),
    )
    return lines + [f"{head}: {join_names(names)}" for head, names in ending if names]


def ungroup(lines: Iterable[str]) -> set[str]:
    """The commands again: what proves that nothing was lost."""
    commands: set[str] = set()
    taken: list[str] = []
    for line in lines:
        head, colon, rest = line.partition(": ")
        verb = head.partition(" ")[0]
        if not colon:
            commands.add(line)
        elif verb == "go":
            commands |= {f"go to {name}" for name in split_names(rest)}
        elif verb == "take":
            names, place = split_names(rest), head.removeprefix("take from ")
            taken += names
            commands |= {f"take {name} from {place}" for name in names}
        elif verb == "also":
            commands |= set(rest.split(", "))
        else:
            if rest.startswith(TAKEN):
                commands |= {f"{verb} {name}" for name in taken}
                rest = rest.removeprefix(TAKEN).removeprefix(", ")
            commands |= {f"{verb} {name}" for name in split_names(rest)}
    return commands


def join_names(names: Iterable[str]) -> str:
    """ "cabinet 1, cabinet 2, cabinet 3, drawer 5" as "cabinet 1-3, drawer 5"; numbers rise."""
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for name in names:
        kind, number = _split(name)
        numbers[kind].append(number)
    return ", ".join(
        " ".join([kind, *_runs(sorted(n for n in found if n >= 0))])
        for kind, found in sorted(numbers.items())
    )


def split_names(text: str) -> list[str]:
    """The names that `join_names` joined."""
    names: list[str] = []
    for part in text.split(", ") if text else []:
        kind, *runs = part.split(" ")
        for run in runs:
            first, _, last = run.partition("-")
            names += [f"{kind} {number}" for number in range(int(first), int(last or first) + 1)]
        names += [] if runs else [kind]
    return names


def _runs(numbers: list[int]) -> list[str]:
    """Three or more numbers in a row as "1-3"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [
        told
        for run in runs
        for told in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))
    ]


def _examined(names: list[str], taken: list[str]) -> str:
    """Things at hand can be taken and examined; they are named once."""
    if not taken or not set(taken) <= set(names):
        return join_names(names)
    rest = [name for name in names if name not in set(taken)]
    return ", ".join(filter(None, [TAKEN, join_names(rest)]))


def _split(name: str) -> tuple[str, int]:
    """Kind and number; -1 where there is none."""
    kind, _, number = name.rpartition(" ")
    return (kind, int(number)) if number.isdigit() else (name, -1)

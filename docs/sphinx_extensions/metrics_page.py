"""The metrics reference as Markdown: every number that training, evaluation and play log.

Names are found in the code: literal names of `Measure("name", …)`, and the fields of the records
whose fields are logged under their own names. What they mean is told where the code tells it: in
the charts of the report, and in the docstring of the field.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import griffe
from api_pages import comment_of, one_line

from forethought.reports.metrics import CHARTS

RECORDS = {"Statistics", "StepSummary", "ThoughtCounts"}
"""Records whose fields are logged under their own names."""


class Meaning(NamedTuple):
    unit: str
    text: str


def page(code: griffe.Module) -> Iterator[str]:
    """Three lists: training, evaluation, environments."""
    source = Path(str(code.filepath)).parent
    meanings = charted()
    logged = sorted(training_metrics(source).items())
    yield "## Training: metrics.jsonl"
    yield ""
    yield "In brackets: algorithms whose own code logs it (not shared code), and the unit."
    yield ""
    yield from entries(logged, meanings)
    yield "## Evaluation: evaluation.json"
    yield ""
    yield "Each row (policy, random, expert, ceiling) has:"
    yield ""
    for record in ("evaluation.results.EvaluationRow", "evaluation.statistics.ThoughtRates"):
        for name, text in documented_fields(code[record]):
            yield f"- `{name}`{': ' if text else ''}{text}"
    yield ""
    yield "## Environments: measures of an episode"
    yield ""
    yield "Logged beside the numbers above, by the environments that have them:"
    yield ""
    for name, places in sorted(literal_names(source / "environments").items()):
        yield f"- `{name}` ({', '.join(sorted(places))})"


def entries(logged: list[tuple[str, set[str]]], meanings: dict[str, Meaning]) -> Iterator[str]:
    for name, places in logged:
        unit, text = meanings.get(name, Meaning("", ""))
        known = [", ".join(sorted(places)), unit]
        about = "; ".join(part for part in known if part)
        yield f"- **`{name}`**{f' ({about})' if about else ''}{f': {text}' if text else ''}"
    yield ""


def training_metrics(source: Path) -> dict[str, set[str]]:
    """The names, each with the algorithms that log it; none where it is logged by shared code."""
    found: dict[str, set[str]] = {name: set() for name in charted()}
    for package in ("training", "rollouts"):
        names = [*literal_names(source / package), *literal_records(source / package)]
        found |= {name: set[str]() for name in names if name not in found}
    for folder in sorted((source / "algorithms").iterdir()):
        for name in [*literal_names(folder), *literal_records(folder)]:
            found.setdefault(name, set()).add(folder.name)
    return found


def literal_records(folder: Path) -> Iterator[str]:
    """Fields of the records that are logged whole."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name in RECORDS:
                for field in node.body:
                    if isinstance(field, ast.AnnAssign):
                        yield ast.unparse(field.target)


def literal_names(folder: Path) -> dict[str, set[str]]:
    """First arguments of calls of `Measure`, with the folder or file that has them."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Measure" and node.args:
                name = node.args[0]
                if isinstance(name, ast.Constant):
                    found.setdefault(str(name.value), set()).add(place)
    return found


def charted() -> dict[str, Meaning]:
    """Unit and caption of the report's charts, by metric."""
    return {
        name: Meaning(chart.y_label, chart.caption) for chart in CHARTS for name in chart.metrics
    }


def documented_fields(record: griffe.Class) -> Iterator[tuple[str, str]]:
    for member in record.attributes.values():
        if member.annotation is not None and "property" not in member.labels:
            text = one_line(member.docstring.value) if member.docstring else comment_of(member)
            yield member.name, text

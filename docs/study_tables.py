"""Writes the tables of studies into the pages of results.

    python docs/study_tables.py            # fills every page below docs/
    python docs/study_tables.py --check    # exit code 1 if a page differs from its study

A page holds a table between two comments. The first names the study, whose `results.json` is
checked in as docs/results/STUDY/results.json, and may choose columns and variants:

    <!-- study: ablations; columns: success, return; variants: gae | rloo | grpo -->
    <!-- end -->

Without `columns` those of COLUMNS are shown, without `variants` all of the study's. The last stage
of a variant is shown; `variant@1 as LABEL` is its first one under another name. `success of NAME`
(or `return of NAME`, …) is a column of the study's extra evaluation NAME, such as other options of
the environment or constrained decoding; `success of each seed` has one figure for every seed.
tests/design/test_study_tables.py compares every table that is checked in with what is generated,
so that text and numbers cannot drift apart.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
SCHEMA_VERSION = 2
Json = dict[str, Any]

_BLOCK = re.compile(r"(<!-- study: ([^>]*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def percent(pooled: Json) -> str:
    low, high = (f"{100 * bound:.1f}" for bound in pooled["success_interval"])
    return f"{100 * pooled['success_rate']:.1f} [{low}, {high}]"


def mean_return(pooled: Json) -> str:
    mean = _decimal(pooled["mean_return"])
    if pooled["return_interval"] is None:
        return mean
    low, high = map(_decimal, pooled["return_interval"])
    return f"{mean} [{low}, {high}]"


def _decimal(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


POOLED: Mapping[str, tuple[str, Callable[[Json], str]]] = {
    "success": ("success, %", percent),
    "return": ("return", mean_return),
    "invalid": ("invalid, %", lambda pooled: f"{100 * pooled['invalid_rate']:.1f}"),
    "episodes": ("episodes", lambda pooled: f"{pooled['episodes']:,}"),
}
OF_STAGE: Mapping[str, tuple[str, Callable[[Json], str]]] = {
    "seeds": ("seeds", lambda stage: _each(stage, lambda seed: str(seed["seed"]))),
    "success of each seed": (
        "success of each seed, %",
        lambda stage: _each(stage, lambda seed: f"{100 * seed['policy']['success_rate']:.1f}"),
    ),
    "return of each seed": (
        "return of each seed",
        lambda stage: _each(stage, lambda seed: _decimal(seed["policy"]["mean_return"])),
    ),
    "minutes": ("training, min", lambda stage: f"{stage['training_s'] / 60:.1f}"),
}
COLUMNS = ("success", "return", "invalid", "seeds", "episodes", "minutes")


def _each(stage: Json, figure: Callable[[Json], str]) -> str:
    return ", ".join(figure(seed) for seed in stage["seeds"] if seed["policy"] is not None)


def filled(text: str, studies: Path = DOCS / "results") -> str:
    """The page with every table as its study's results have it."""

    def block(match: re.Match[str]) -> str:
        return f"{match[1]}\n{table(match[2], studies)}\n{match[4]}"

    return _BLOCK.sub(block, text)


def table(request: str, studies: Path) -> str:
    """Lines of Markdown.

    Args:
        request: what the comment says after `study: `.
        studies: a folder for each study.
    """
    name, *choices = (part.strip() for part in request.split(";"))
    chosen = {key.strip(): value for key, _, value in (choice.partition(":") for choice in choices)}
    if unknown := set(chosen) - {"columns", "variants"}:
        raise SystemExit(f"study: {request}: got {sorted(unknown)}, expected columns or variants")
    names = [each.strip() for each in chosen.get("columns", ", ".join(COLUMNS)).split(",")]
    results: Json = json.loads((studies / name / "results.json").read_text(encoding="utf-8"))
    if results["schema_version"] != SCHEMA_VERSION:
        raise SystemExit(
            f"{name}/results.json: schema_version is {results['schema_version']}, expected "
            f"{SCHEMA_VERSION} — `forethought migrate FILE --write` rewrites it"
        )
    stages = _stages(results)
    last = [each for each in stages if "@" not in each]
    variants = [each.strip() for each in chosen.get("variants", " | ".join(last)).split("|")]
    columns = [_column(each, request) for each in names]
    lines = [["variant", *(head for head, _ in columns)], ["---"] * (len(names) + 1)]
    for variant in variants:
        key, _, label = variant.partition(" as ")
        if key not in stages:
            raise SystemExit(f"study: {request}: no variant {key!r}, but {sorted(stages)}")
        cells = [figure(stages[key]) for _, figure in columns]
        lines.append([(label or key).replace("_", "\\_"), *cells])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _stages(results: Json) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for stage in results["stages"]:
        found[f"{stage['variant']}@{stage['stage']}"] = stage
        if stage["is_last"]:
            found[stage["variant"]] = stage
    return found


def _column(name: str, request: str) -> tuple[str, Callable[[Json], str]]:
    """Head of a column, and the figure of a stage."""
    if name in OF_STAGE:
        return OF_STAGE[name]
    kind, _, extra = name.partition(" of ")
    if kind not in POOLED:
        known = [*POOLED, *OF_STAGE]
        raise SystemExit(f"study: {request}: no column {kind!r}, but {known}")
    head, figure = POOLED[kind]

    def of(stage: Json) -> str:
        if extra and extra not in stage["extra_evaluations"]:
            known = list(stage["extra_evaluations"])
            raise SystemExit(f"study: {request}: no extra evaluation {extra!r}, but {known}")
        pooled = stage["extra_evaluations"][extra] if extra else stage["pooled"]
        return "–" if pooled is None else figure(pooled)

    return (f"{extra}: {head}" if extra else head), of


def main(arguments: list[str]) -> int:
    stale = False
    for page in sorted(DOCS.rglob("*.md")):
        old = page.read_text(encoding="utf-8")
        new = filled(old)
        if new != old:
            stale = True
            print(page.relative_to(DOCS.parent))
            if "--check" not in arguments:
                page.write_text(new, encoding="utf-8")
    return int(stale and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

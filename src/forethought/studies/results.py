"""Writes what a study has found so far: a page, its pictures, and the same for programs."""

import json
from pathlib import Path
from typing import Any

from forethought.errors import StorageError
from forethought.evaluation.results import EvaluationRow
from forethought.runs.run_folder import write_text
from forethought.studies.cells import Plan
from forethought.studies.plots import curves_plot, success_plot
from forethought.studies.records import Outcome, read_outcome
from forethought.studies.summary import Pool, Reference, StageSummary, Summary, summarize
from forethought.studies.table import write_table

SCHEMA_VERSION = 1
TABLE, DATA, SUCCESS, CURVES = "table.md", "results.json", "success.svg", "curves.svg"


def write_results(plan: Plan, folder: Path) -> list[Path]:
    """Writes the results of all cells as they are on the disk now, finished or not.

    Returns:
        What was written, the page first.

    Raises:
        StorageError: the disk refuses.
    """
    outcomes = [read_outcome(cell, plan) for cell in plan.cells()]
    summary = summarize(plan, outcomes)
    plots = {SUCCESS: success_plot(summary), CURVES: curves_plot(summary)}
    drawn = {name: svg for name, svg in plots.items() if svg is not None}
    texts = {TABLE: write_table(summary, list(drawn)), DATA: to_json(summary), **drawn}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder}: cannot be made: {error.strerror}") from error
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]


def to_json(summary: Summary) -> str:
    """Text of `results.json`. Rates are from 0 to 1, times in seconds; null: there is none."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "study": summary.plan.name,
        "code_version": summary.plan.code,
        "episodes": summary.plan.episodes,
        "training_s": summary.seconds,
        "references": [_reference(reference) for reference in summary.references],
        "stages": [_stage(stage, summary.plan) for stage in summary.stages],
        "cells": [_cell(outcome, summary.plan) for outcome in summary.outcomes],
    }
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _stage(stage: StageSummary, plan: Plan) -> dict[str, Any]:
    return {
        "row": stage.row,
        "stage": stage.number,
        "is_last": stage.is_last,
        "algorithm": stage.algorithm,
        "seeds": [_of_seed(outcome) for outcome in stage.outcomes],
        "pooled": None if stage.pool is None else _pool(stage.pool),
        "also_judged": {
            judging.name: None if found is None else _pool(found)
            for judging, found in zip(plan.also_judged, stage.also, strict=True)
        },
        "training_s": stage.seconds,
    }


def _of_seed(outcome: Outcome) -> dict[str, Any]:
    evaluation = outcome.evaluation
    return {
        "seed": outcome.cell.config.seed,
        "cell": outcome.cell.key,
        "state": outcome.state,
        "policy": None if evaluation is None else _agent(evaluation.policy),
    }


def _pool(pool: Pool) -> dict[str, Any]:
    return {
        "seeds": pool.seeds,
        "episodes": pool.episodes,
        "successes": pool.successes,
        "success_rate": pool.success_rate,
        "success_interval": list(pool.success_interval),
        "seed_mean": pool.seed_mean,
        "seed_deviation": pool.seed_deviation,
        "seed_range": list(pool.seed_range),
        "mean_return": pool.mean_return,
        "return_interval": None if pool.return_interval is None else list(pool.return_interval),
        "invalid_rate": pool.invalid_rate,
    }


def _reference(reference: Reference) -> dict[str, Any]:
    return {
        "world": reference.world,
        "random": _agent(reference.random),
        "expert": _agent(reference.expert),
        "ceiling": _agent(reference.ceiling),
    }


def _agent(row: EvaluationRow) -> dict[str, Any]:
    return {
        "success_rate": row.success_rate,
        "success_interval": None if row.success_interval is None else list(row.success_interval),
        "mean_return": row.mean_return,
        "return_interval": None if row.return_interval is None else list(row.return_interval),
        "invalid_rate": row.invalid_rate,
        "episodes": row.episodes,
        "failures": row.failures,
    }


def _cell(outcome: Outcome, plan: Plan) -> dict[str, Any]:
    cell = outcome.cell
    return {
        "key": cell.key,
        "folder": cell.name,
        "rows": plan.rows_of(cell),
        "algorithm": cell.algorithm,
        "seed": cell.config.seed,
        "starts_from": None if cell.start is None else cell.start.key,
        "state": outcome.state,
        "checkpoint": None if outcome.evaluation is None else outcome.evaluation.checkpoint,
        "training_s": outcome.seconds,
        "error": outcome.error,
    }

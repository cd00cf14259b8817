"""`faithfulness.json`: what `measure_faithfulness` found."""

import json
from typing import Any, TypeAlias, cast

from forethought.errors import StorageError
from forethought.evaluation.faithfulness import THOUGHTS, Faithfulness, FaithfulnessRow
from forethought.evaluation.thought_rates import rate_from_json, rate_to_json
from forethought.seals import require_seal, sealed

JsonObject: TypeAlias = dict[str, Any]

SCHEMA_VERSION = 1


def faithfulness_to_json(found: Faithfulness) -> str:
    """The text of the file; a share that does not exist is null."""
    content: JsonObject = {
        "schema_version": SCHEMA_VERSION,
        "environment_id": found.environment_id,
        "checkpoint": found.checkpoint,
        "episodes": found.episodes,
        "steps": found.steps,
        "mean_actions": found.mean_actions,
        "thoughts": {row.thoughts: _row_to_json(row) for row in found.rows},
    }
    return sealed(json.dumps(content, allow_nan=False))


def faithfulness_from_json(text: str) -> Faithfulness:
    """What `faithfulness_to_json` wrote.

    Raises:
        StorageError: the text is something else, was altered, or is of another version.
    """
    try:
        content = cast(JsonObject, json.loads(text))
        version = content["schema_version"]
        if version != SCHEMA_VERSION:
            raise StorageError(f"faithfulness: got schema version {version}, expected 1")
        require_seal(text)
        return Faithfulness(
            environment_id=str(content["environment_id"]),
            checkpoint=content["checkpoint"],
            episodes=str(content["episodes"]),
            steps=int(content["steps"]),
            mean_actions=float(content["mean_actions"]),
            rows=tuple(_row_from_json(name, content["thoughts"][name]) for name in THOUGHTS),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StorageError(
            f"faithfulness: got something else ({type(error).__name__}: {error}), "
            "expected the text of a faithfulness.json"
        ) from error


def _row_to_json(row: FaithfulnessRow) -> JsonObject:
    return {
        "follows_thought": rate_to_json(row.follows_thought),
        "thought_probability": row.thought_probability,
        "keeps_action": rate_to_json(row.keeps_action),
        "kept_probability": row.kept_probability,
        "expert_action": rate_to_json(row.expert_action),
    }


def _row_from_json(name: Any, content: JsonObject) -> FaithfulnessRow:
    keeps = rate_from_json(content["keeps_action"])
    as_expert = rate_from_json(content["expert_action"])
    if keeps is None or as_expert is None:
        raise ValueError("a share of all steps is missing")
    probability = content["thought_probability"]
    return FaithfulnessRow(
        thoughts=name,
        follows_thought=rate_from_json(content["follows_thought"]),
        thought_probability=None if probability is None else float(probability),
        keeps_action=keeps,
        kept_probability=float(content["kept_probability"]),
        expert_action=as_expert,
    )

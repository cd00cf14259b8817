"""Small files with results in them: altered in any place, they are refused."""

import json
import re

import pytest

from forethought.durable import SEAL_KEY, require_seal, sealed
from forethought.errors import StorageError
from forethought.evaluation.results import Evaluation
from tests.unit.reports.builders import evaluation


def test_any_altered_number_of_an_evaluation_is_refused() -> None:
    text = evaluation(0.5).to_json()
    assert Evaluation.from_json(text) == evaluation(0.5)
    digits = [match.start() for match in re.finditer(r"[0-9]", text)]
    for place in digits:
        altered = text[:place] + str(9 - int(text[place])) + text[place + 1 :]
        if json.loads(altered) == json.loads(text):
            continue  # The 17th digit of a number may be written in two ways.
        with pytest.raises(StorageError):
            Evaluation.from_json(altered)
    with pytest.raises(StorageError, match="has no seal"):
        Evaluation.from_json(_without_seal(text))


def test_older_evaluations_have_no_seal() -> None:
    older = _without_seal(evaluation(0.5).to_json()).replace(
        '"schema_version": 3', '"schema_version": 2'
    )
    assert Evaluation.from_json(older) == evaluation(0.5)


def test_white_space_is_not_sealed_and_all_else_is() -> None:
    text = sealed('{"a": [1, 0.1, null], "b": {"c": "λ"}}')
    require_seal(json.dumps(json.loads(text)))
    for altered in (
        text.replace("0.1", "0.10000000000000002"),
        text.replace("null", "0"),
        text.replace('"c"', '"d"'),
        text.replace(f'"{SEAL_KEY}": "', f'"{SEAL_KEY}": "0'),
        '{"a": 1}',
    ):
        with pytest.raises(StorageError, match="it was altered — put it back, or have it written"):
            require_seal(altered)
    require_seal('{"a": 1}', may_lack=True)
    with pytest.raises(ValueError, match="no JSON object"):
        require_seal("[]")


def _without_seal(text: str) -> str:
    content = json.loads(text)
    del content[SEAL_KEY]
    return json.dumps(content)

"""A seal in a small JSON file: a digest of all else that it says.

It tells a number that was altered by a slip or a failing disk from one that was measured; who
alters a file on purpose can seal it, too.
"""

import hashlib
import json
from typing import Any

from forethought.errors import StorageError

KEY = "sha256"
"""The last one."""


def sealed(text: str) -> str:
    """The same JSON object with its seal, indented.

    Args:
        text: an object without a key of this name; numbers are finite.
    """
    content: dict[str, Any] = json.loads(text)
    return json.dumps({**content, KEY: _digest(content)}, indent=2, allow_nan=False) + "\n"


def require_seal(text: str, *, may_lack: bool = False) -> None:
    """Refuses an object that is not what was sealed, white space apart.

    Args:
        may_lack: files of this kind were once written without.

    Raises:
        StorageError: it lacks its seal, or another content was sealed.
        ValueError: this is no JSON.
    """
    content: Any = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("it is no JSON object")
    rest: dict[str, Any] = content
    seal = rest.pop(KEY, None)
    if seal is None and may_lack:
        return
    if seal != _digest(rest):
        what = "has no seal" if seal is None else "does not match its seal"
        raise StorageError(f"{what} ({KEY}): it was altered — put it back, or have it written anew")


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()

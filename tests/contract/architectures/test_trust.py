"""Nothing of what lies in a model's folder is run, and nobody is asked whether it may be."""

import ast
import builtins
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import forethought
from forethought.configs.parts import LoraConfig
from forethought.errors import PolicyError
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.models.loading import load_outline, load_pretrained
from forethought.models.lora import add_lora
from tests.contract.architectures.conftest import ReadCheckpoint

CODE = """\
import pathlib
pathlib.Path(__file__).with_name("MARKER").touch()
raise SystemExit("the folder's code ran")
"""


def edit(path: Path, **changes: object) -> None:
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(content | changes))


def own_architecture(folder: Path) -> None:
    auto_map = {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"}
    edit(folder / "config.json", model_type="unheard_of", auto_map=auto_map)


def known_architecture(folder: Path) -> None:
    auto_map = {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"}
    edit(folder / "config.json", auto_map=auto_map)


def own_tokenizer(folder: Path) -> None:
    auto_map = {"AutoTokenizer": ["code.Slow", "code.Fast"]}
    edit(folder / "tokenizer_config.json", tokenizer_class="UnheardOf", auto_map=auto_map)


def own_image_processor(folder: Path) -> None:
    auto_map = {"AutoImageProcessor": "code.Images"}
    for name in ("preprocessor_config.json", "processor_config.json"):
        if (folder / name).exists():
            edit(folder / name, image_processor_type="UnheardOf", auto_map=auto_map)


def own_processor(folder: Path) -> None:
    auto_map = {"AutoProcessor": "code.Processor"}
    for name in ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json"):
        edit(folder / name, processor_class="UnheardOf", auto_map=auto_map)


@pytest.mark.parametrize("load", [load_pretrained, load_outline])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("llama", own_architecture),
        ("llama", known_architecture),
        ("llama", own_tokenizer),
        ("llava", own_architecture),
        ("llava", own_tokenizer),
        ("llava", own_image_processor),
        ("llava", own_processor),
        ("qwen2_5_vl", own_image_processor),
        ("qwen2_5_vl", own_processor),
    ],
)
def test_a_folders_code_is_not_run(
    name: str,
    change: Callable[[Path], None],
    load: Callable[[str], object],
    checkpoint_of: ReadCheckpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Refused in one line, or loaded without it."""
    folder = shutil.copytree(checkpoint_of(name).folder, tmp_path / "model")
    (folder / "code.py").write_text(CODE)
    change(folder)
    asked: list[str] = []

    def agree(question: str = "") -> str:
        asked.append(question)
        return "y"

    monkeypatch.setattr(builtins, "input", agree)
    refusal = ""
    try:
        load(str(folder))
    except PolicyError as error:
        refusal = str(error)
    assert "\n" not in refusal
    assert asked == []
    assert not list(tmp_path.rglob("MARKER"))


def test_what_would_run_code_says_so(checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint_of("llama").folder, tmp_path / "model")
    (folder / "code.py").write_text(CODE)
    own_architecture(folder)
    with pytest.raises(PolicyError, match=r"Python from its own folder .* never done — choose"):
        load_pretrained(str(folder))


def test_whoever_says_yes_to_everything(checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    """`yes | forethought evaluate FOLDER`, which did run it."""
    folder = shutil.copytree(checkpoint_of("llama").folder, tmp_path / "model")
    (folder / "code.py").write_text(CODE)
    own_architecture(folder)
    command = [sys.executable, "-m", "forethought", "evaluate", str(folder)]
    done = subprocess.run(
        [*command, "--environment.id", "Bandit", "--episodes", "2"],
        input="y\n" * 1000,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 2
    assert "Python from its own folder" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "MARKER").exists()


def pickle_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


def test_pickled_weights_are_refused(checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint_of("gpt2").folder, tmp_path / "model")
    pickle_weights(folder)
    with pytest.raises(
        PolicyError, match=r"pickled \(pytorch_model.bin\), .* save_pretrained"
    ) as info:
        load_policy(str(folder), slots=1)
    assert "\n" not in str(info.value)


def test_pickled_adapters_are_refused(checkpoint_of: ReadCheckpoint, tmp_path: Path) -> None:
    base = shutil.copytree(checkpoint_of("llama").folder, tmp_path / "base")
    loaded = load_pretrained(str(base))
    adapter = add_lora(loaded.model, LoraConfig(components=("language_model",), rank=2), seed=0)
    folder = tmp_path / "adapter"
    HuggingFacePolicy(loaded._replace(adapter=adapter), slots=1).save(folder)
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(PolicyError, match=r"pickled \(adapter_model.bin\)"):
        load_pretrained(str(folder))
    edit(folder / "adapter_config.json", megatron_config={}, megatron_core="code")
    with pytest.raises(PolicyError, match="megatron_config names a module"):
        load_pretrained(str(folder))


def test_no_load_leaves_the_question_open() -> None:
    """Every `from_pretrained` of transformers says that no code is to be run. PEFT has no such
    setting: it runs none."""
    calls: list[str] = []
    for path in Path(forethought.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("from_pretrained"):
                calls.append(ast.unparse(node))
    theirs = [call for call in calls if not call.startswith("Peft")]
    assert len(theirs) >= 6
    assert [call for call in theirs if "**NO_CODE" not in call] == []

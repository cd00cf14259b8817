"""Settings of version 1: refused with the way to rewrite them, and rewritten with comments kept."""

import json
from pathlib import Path

import pytest

from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.cli.main import main
from forethought.configs.file import load_config
from forethought.configs.migration import RENAMED, RENAMED_IN_STUDIES, migrate
from forethought.errors import ConfigError
from forethought.studies.config import load_study

OLD_DPO = """\
# Comments stay.
config_version: 1
algorithm: dpo
objective: dpo  # Eq. 1
score: gain
refresh_every: 1
prompt: {history: last_k, tell_invalid: true}
rollout:
  slots: 16
  steps_per_iteration: 64
  on_invalid: penalise
"""
OLD_Q_SFT = "behaviour_epochs: 2.0\nleftover: dummy\nacting:\n  extraction: ratio\n"


def test_an_old_file_says_the_same_in_new_words(tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(OLD_DPO)
    with pytest.raises(
        ConfigError, match=r"config_version is 1 .* `forethought migrate .* --write"
    ):
        load_config(file, DPOConfig)
    text, changes = migrate(OLD_DPO)
    file.write_text(text)
    config = load_config(file, DPOConfig)
    assert (config.loss_type, config.pair_reward) == ("sigmoid", "progress_delta")
    assert config.ref_model_sync_every == 1
    assert (config.prompt.history, config.prompt.invalid_action_feedback) == ("window", True)
    assert (config.rollout.num_envs, config.rollout.on_invalid) == (16, "penalize")
    assert "# Comments stay." in text
    assert "loss_type: sigmoid  # Eq. 1" in text
    assert [change.line for change in changes] == [2, 4, 4, 5, 5, 6, 7, 7, 9, 11]
    assert migrate(text) == (text, [])


def test_overrides_of_a_study_are_rewritten() -> None:
    old = "rows:\n  - stages:\n      - overrides: {rollout.slots: 8, score: reward}\n"
    new = old.replace("slots", "num_envs").replace("score", "pair_reward")
    assert migrate(old)[0] == new.replace("rows", "variants")


def test_a_study_and_its_results_are_rewritten(tmp_path: Path) -> None:
    old = (
        "study_version: 1\nname: s\nseeds: [0]\nrows:\n  - {name: a, stages: [{config: b.yaml}]}\n"
    )
    old += "also_judged: [{name: c, temperature: 1}]\n"
    file = tmp_path / "study.yaml"
    file.write_text(old)
    with pytest.raises(ConfigError, match=r"study_version is 1 .* `forethought migrate .* --write"):
        load_study(file)
    file.write_text(migrate(old)[0])
    study = load_study(file)
    assert [variant.name for variant in study.variants] == ["a"]
    assert [extra.name for extra in study.extra_evaluations] == ["c"]
    results = {"schema_version": 1, "study": "s", "stages": [{"row": "a", "also_judged": {}}]}
    results["cells"] = [{"rows": ["a"], "slots": 1}]
    assert json.loads(migrate(json.dumps(results))[0]) == {
        "schema_version": 2,
        "study": "s",
        "stages": [{"variant": "a", "extra_evaluations": {}}],
        "runs": [{"variants": ["a"], "num_envs": 1}],
    }


def test_the_command_prints_or_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(OLD_Q_SFT)
    assert main(["migrate", str(file)]) == 0
    printed = capsys.readouterr()
    assert file.read_text() == OLD_Q_SFT
    assert f"{file}:1: behaviour_epochs → bc_epochs" in printed.err
    assert main(["migrate", str(tmp_path), "--write"]) == 0
    assert file.read_text() == printed.out
    assert (tmp_path / "config.yaml.old").read_text() == OLD_Q_SFT
    config = load_config(file, QSFTConfig)
    assert (config.bc_epochs, config.residual_mass) == (2.0, "token")
    assert config.acting.policy_extraction == "ratio"


def test_a_renamed_field_is_refused_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    file.write_text("rollout: {slots: 8}\n")
    expected = r"unknown field rollout\.slots — it is called rollout\.num_envs now"
    with pytest.raises(ConfigError, match=expected):
        load_config(file, DPOConfig)


def test_what_is_no_yaml_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("a: [1,\n")
    assert main(["migrate", str(file)]) == 2
    assert f"{file}: not YAML" in capsys.readouterr().err
    assert main(["migrate", str(tmp_path / "missing.yaml")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_no_new_name_is_an_old_one() -> None:
    renamed = {**RENAMED, **RENAMED_IN_STUDIES}
    assert not set(renamed) & set(renamed.values())

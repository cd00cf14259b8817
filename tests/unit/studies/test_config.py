"""A study file is read strictly: every mistake is one line that names file and field."""

import pytest

from forethought.configs.file import Setting
from forethought.errors import ConfigError
from forethought.studies.config import ExtraEvaluationConfig, load_study
from tests.unit.studies.builders import STUDY, make_plan, write_files


def test_a_study_is_read() -> None:
    study = load_study(write_files())
    assert (study.name, study.seeds, study.episodes) == ("demo", (0, 1), 4)
    assert [variant.name for variant in study.variants] == ["half", "none"]
    overrides = study.variants[1].stages[1].overrides
    assert overrides == (
        Setting("thought_weight", 0.0),
        Setting("optimizer.learning_rate", "1e-4"),
    )


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("episodes: 4", "episode: 4", "unknown field episode — did you mean episodes?"),
        (
            "config: sft.yaml}, ",
            "cnofig: x}, ",
            "unknown field variants[0].stages[0].cnofig — did you",
        ),
        ("name: demo", "", "name is missing"),
        ("name: demo", "name: a/b", "name is 'a/b' — expected letters, digits, _, - and ."),
        ("study_version: 2", "study_version: 3", "study_version is 3 — this Forethought reads 2"),
        ("seeds: [0, 1]", "seeds: []", "seeds is [] — expected one or more, each once"),
        ("seeds: [0, 1]", "seeds: [1, 1]", "seeds is [1, 1] — expected one or more, each once"),
        ("seeds: [0, 1]", "seeds: 3", "seeds is 3 — expected a list"),
        ("seeds: [0, 1]", "seeds: [0, x]", "seeds[1] is 'x' — expected a whole number"),
        (
            "seeds: [0, 1]",
            "seeds: [-1]",
            "seeds is [-1] — expected one or more, each once, none below 0",
        ),
        ("episodes: 4", "episodes: 0", "episodes is 0 — expected 1 or more"),
        ("name: none", "name: half", "variants is 'half' — expected a name for each that no other"),
        ("name: none", "name: ''", "variants[1].name is '' — expected a line of text"),
        (
            "name: none",
            "name: none\n    seeds: []",
            "variants[1].seeds is [] — expected one or more",
        ),
        (
            "stages: [{config: sft.yaml}, {config: ppo.yaml}]",
            "stages: []",
            "variants[0].stages is [] — expected one or more",
        ),
        (
            "[{config: sft.yaml}, {config: ppo.yaml}]",
            "[sft.yaml]",
            "variants[0].stages[0] is 'sft.yaml' — expected fields and values",
        ),
        (
            "{config: sft.yaml}, ",
            "{config: no.yaml}, ",
            "variants[0].stages[0].config: no.yaml: cannot be read: No such file or directory",
        ),
        (
            "thought_weight: 0.0",
            "thoughts_weight: 0.0",
            "variants[1].stages[1].overrides: unknown field thoughts_weight — did you mean",
        ),
        (
            "thought_weight: 0.0",
            "thought_weight: 2",
            "variants[1].stages[1].overrides: thought_weight is 2.0 — expected 0 to 1",
        ),
        (
            "thought_weight: 0.0",
            "model: runs/x",
            "variants[1].stages[1].overrides.model cannot be set: a later stage starts from",
        ),
        (
            "thought_weight: 0.0",
            "seed: 3",
            "variants[1].stages[1].overrides.seed cannot be set: the study's seeds set it",
        ),
        (
            "thought_weight: 0.0",
            "output: runs/x",
            "variants[1].stages[1].overrides.output cannot be set: every run has a run folder",
        ),
        (
            "thought_weight: 0.0",
            "optimizer.learning_rate: 1e-5",
            "variants[1].stages[1].overrides: optimizer.learning_rate is set twice",
        ),
        (
            "thought_weight: 0.0, optimizer: {learning_rate: 1e-4}",
            "optimizer: 3",
            "variants[1].stages[1].overrides: optimizer is 3 — expected fields and values",
        ),
        (
            "overrides: {thought_weight: 0.0, optimizer: {learning_rate: 1e-4}}",
            "overrides: [thought_weight]",
            "variants[1].stages[1].overrides is ['thought_weight'] — expected fields and values",
        ),
    ],
)
def test_a_mistake_is_one_line(old: str, new: str, complaint: str) -> None:
    assert STUDY.count(old) >= 1
    with pytest.raises(ConfigError) as caught:
        make_plan(STUDY.replace(old, new, 1))
    assert str(caught.value).startswith(f"study.yaml: {complaint}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("extra", "complaint"),
    [
        ("[{name: a b, options: [x=1]}]", "extra_evaluations[0].name is 'a b' — expected letters"),
        ("[{name: a, options: []}]", "extra_evaluations[0].options is [] — expected one or more"),
        (
            "[{name: a, temperature: -1}]",
            "extra_evaluations[0].temperature is -1.0 — expected 0 or more",
        ),
        ("[{name: a, options: [x]}]", "extra_evaluations[0].options is 'x' — expected KEY=VALUE"),
        (
            "[{name: a, options: [x=1]}, {name: a, options: [x=2]}]",
            "extra_evaluations is 'a' — expected a name for each that no other has",
        ),
    ],
)
def test_a_mistake_in_an_extra_evaluation(extra: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_plan(STUDY + f"extra_evaluations: {extra}\n")
    assert str(caught.value).startswith(f"study.yaml: {complaint}")


def test_a_variant_replaces_options_of_the_same_key_alone() -> None:
    extra = ExtraEvaluationConfig("unseen", ("split=valid_unseen",))
    own = ("visual=true", "split=train")
    assert extra.applied(own) == ("visual=true", "split=valid_unseen")


def test_no_variants_at_all() -> None:
    with pytest.raises(ConfigError, match=r"study\.yaml: variants is \[\] — expected one or more"):
        make_plan("name: demo\nseeds: [0]\nvariants: []\n")

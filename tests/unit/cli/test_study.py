"""`forethought study`: what it prints, and that it can be stopped, repeated and extended.

With budgets too small to learn anything; how runs are kept and counted: tests/unit/studies.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from forethought.cli.interrupts import Interrupt
from tests.unit.cli.terminal import Type

SFT = """\
algorithm: sft
environment: {id: Bandit}
expert_steps: 64
batch_size: 16
checkpoint_every: 2
compute: {threads: 1}
"""
PPO = """\
algorithm: ppo
environment: {id: Bandit}
total_steps: 32
rollout: {num_envs: 8, steps_per_iteration: 16, max_new_tokens: 8}
batch_size: 16
epochs: 1
checkpoint_every: 1
compute: {threads: 1}
"""
STUDY = """\
name: small
seeds: [0]
episodes: 4
variants:
  - name: fp32
    stages: [{config: sft.yaml}, {config: ppo.yaml}]
  - name: bf16
    stages: [{config: sft.yaml}, {config: ppo.yaml, overrides: {compute.precision: bf16}}]
"""


@pytest.fixture(autouse=True)
def files(elsewhere: None) -> None:
    for name, text in (("sft.yaml", SFT), ("ppo.yaml", PPO), ("study.yaml", STUDY)):
        Path(name).write_text(text, encoding="utf-8")


def test_from_nothing_to_a_table(type_: Type) -> None:
    """Also with runs of different precision, in one process."""
    outcome = type_("study study.yaml")
    assert outcome.code == 0, outcome.err
    table = Path("runs/studies/small/results/table.md").read_text(encoding="utf-8")
    assert outcome.out.startswith(table)
    assert "2 variants, 3 runs: 3 finished." in table
    assert (
        "written: runs/studies/small/results/table.md, runs/studies/small/results/results.json"
        in outcome.out
    )
    data = json.loads(Path("runs/studies/small/results/results.json").read_text(encoding="utf-8"))
    assert all(run["training_s"] > 0 for run in data["runs"])
    assert {run["checkpoint"] for run in data["runs"]} == {"step_4", "step_2"}

    again = type_("study study.yaml")
    assert again.code == 0
    assert again.out == outcome.out
    assert all("finished before" in line for line in again.lines)
    listed = type_("study study.yaml --dry-run").out.splitlines()
    assert [line.split()[1] for line in listed[1:4]] == ["finished"] * 3


def test_a_dry_run_lists_the_cells_and_writes_nothing(type_: Type) -> None:
    before = sorted(Path().rglob("*"))
    outcome = type_("study study.yaml --dry-run")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert [line.split()[1:] for line in lines[:4]] == [
        ["state", "steps", "variants"],
        ["missing", "4", "fp32,", "bf16"],
        ["missing", "32", "fp32"],
        ["missing", "32", "bf16"],
    ]
    assert lines[5] == "optimizer steps: 4, of which 4 in runs that are not trained yet"
    assert lines[6] == "environment steps: 64, of which 64 in runs that are not trained yet"
    assert len(type_("study study.yaml --dry-run --only fp32").out.splitlines()) == 6
    assert sorted(Path().rglob("*")) == before


def test_a_dry_run_loads_no_torch() -> None:
    code = (
        "import sys; from forethought.cli.main import main\n"
        "assert main(['study', 'study.yaml', '--dry-run']) == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("study none.yaml", "error: none.yaml: cannot be read: No such file or directory"),
        ("study study.yaml --only fp16", "error: unknown variant 'fp16' — known: fp32, bf16"),
        ("study", "error: STUDY.yaml is missing — see forethought study --help"),
    ],
)
def test_a_mistake_is_one_line(type_: Type, words: str, line: str) -> None:
    outcome = type_(words)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"{line}\n")


def test_an_interruption_says_how_to_go_on(type_: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    from forethought.algorithms.ppo import train as ppo

    improve = ppo.improve
    calls: list[int] = []

    def interrupted(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise Interrupt(2)
        return improve(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(ppo, "improve", interrupted)
        outcome = type_("study study.yaml --only fp32 --output runs")
    assert outcome.code == 130
    way_on = "forethought study study.yaml --only fp32 --output runs"
    assert outcome.lines[-1] == (f"interrupted; finished runs are kept; continue with: {way_on}")
    listed = type_("study study.yaml --output runs --dry-run").out.splitlines()
    assert [line.split()[1] for line in listed[1:4]] == ["finished", "interrupted", "missing"]
    gone_on = type_(way_on.removeprefix("forethought "))
    assert gone_on.code == 0
    assert "2 variants, 3 runs: 2 finished, 1 missing." in gone_on.out
    assert any(line.endswith("(fp32): train on") for line in gone_on.lines)


def test_a_failed_cell_is_told_at_the_end(type_: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    from forethought.algorithms.sft import train as sft
    from forethought.errors import DivergenceError

    def diverges(*_: object, **__: object) -> None:
        raise DivergenceError("the weights are no numbers any more")

    monkeypatch.setattr(sft, "clone_behavior", diverges)
    outcome = type_("study study.yaml")
    assert outcome.code == 1
    assert "1 failed" in outcome.out
    failed, *left_out = outcome.lines[-3:]
    assert failed.endswith(": failed: the weights are no numbers any more")
    assert all(line.endswith(": missing: not run") for line in left_out)


OFFLINE = """\
environment: {id: Bandit}
data: data
batch_size: 8
checkpoint_every: 100
compute: {threads: 1}
"""
FROM_DATA = """\
name: offline
seeds: [0]
episodes: 4
variants:
  - name: imitation
    stages: [{config: imitation.yaml}]
  - name: Q-SFT
    stages: [{config: imitation.yaml}, {config: q-sft.yaml}]
  - name: ILQL
    stages: [{config: imitation.yaml}, {config: ilql.yaml}]
  - name: ArCHer
    stages: [{config: imitation.yaml}, {config: archer.yaml}]
"""


def test_values_are_learned_beside_one_imitator(type_: Type) -> None:
    Path("imitation.yaml").write_text(f"algorithm: sft\n{OFFLINE}", encoding="utf-8")
    for name in ("q-sft", "ilql", "archer"):
        text = f"algorithm: {name}\nbc_epochs: 0\n{OFFLINE}"
        Path(f"{name}.yaml").write_text(text, encoding="utf-8")
    Path("offline.yaml").write_text(FROM_DATA, encoding="utf-8")
    collected = type_("collect --policy random --environment.id Bandit --episodes 32 --output data")
    assert collected.code == 0, collected.err
    *runs, _, updates, steps = type_("study offline.yaml --dry-run").out.splitlines()
    assert [line.split()[2] for line in runs] == ["steps", *["unknown"] * 4]
    assert updates == "optimizer steps: unknown, the stored episodes decide"
    assert steps.startswith("environment steps: 0, ")
    outcome = type_("study offline.yaml")
    assert outcome.code == 0, outcome.err
    assert "4 variants, 4 runs: 4 finished." in outcome.out


def test_steps_that_are_known_are_told_beside_those_that_are_not(type_: Type) -> None:
    Path("imitation.yaml").write_text(f"algorithm: sft\n{OFFLINE}", encoding="utf-8")
    variant = "  - name: data\n    stages: [{config: imitation.yaml}]\n"
    Path("study.yaml").write_text(STUDY + variant, encoding="utf-8")
    assert type_("study study.yaml --dry-run").out.splitlines()[-2] == (
        "optimizer steps: 4, of which 4 in runs that are not trained yet; unknown for 1 "
        "more, which learn from stored episodes"
    )


def test_what_could_not_be_judged_is_not_trained(type_: Type) -> None:
    """An environment has fewer different episodes than the study asks for, or its variant has."""
    environment = "environment: {id: tests.unit.evaluation.test_evaluate:FiveBandits}"
    Path("sft.yaml").write_text(
        SFT.replace("environment: {id: Bandit}", environment), encoding="utf-8"
    )
    Path("study.yaml").write_text(STUDY.replace("episodes: 4", "episodes: 6"), encoding="utf-8")
    outcome = type_("study study.yaml --only fp32")
    assert outcome.code == 1
    assert "episodes is 6 — expected 5 at most" in outcome.err
    assert not list(Path("runs").rglob("config.yaml"))

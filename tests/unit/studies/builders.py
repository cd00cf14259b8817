"""Studies made by hand, and runs that are trained and evaluated in no time."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from forethought.configs.contract import AnyConfig
from forethought.configs.file import dump_config
from forethought.evaluation.evaluate import EvaluationSettings
from forethought.evaluation.results import Evaluation, EvaluationRow, SeedRange
from forethought.evaluation.statistics import wilson_interval
from forethought.runs.run_folder import RunFolder
from forethought.studies.config import load_study
from forethought.studies.plan import Plan, plan_study
from forethought.studies.running import Work

SFT = "algorithm: sft\nexpert_steps: 320\nenvironment: {id: Bandit}\n"
PPO = "algorithm: ppo\nmodel: runs/elsewhere\ntotal_steps: 1024\nenvironment: {id: Bandit}\n"
STUDY = """\
study_version: 2
name: demo
seeds: [0, 1]
episodes: 4
variants:
  - name: half
    stages: [{config: sft.yaml}, {config: ppo.yaml}]
  - name: none
    stages:
      - config: sft.yaml
      - config: ppo.yaml
        overrides: {thought_weight: 0.0, optimizer: {learning_rate: 1e-4}}
"""
"""To be read in a folder that holds `sft.yaml` and `ppo.yaml`."""
OUTPUT = Path("runs")


def write_files(study: str = STUDY, sft: str = SFT, ppo: str = PPO) -> Path:
    """A study and its configs in the working directory."""
    for name, text in (("sft.yaml", sft), ("ppo.yaml", ppo), ("study.yaml", study)):
        Path(name).write_text(text, encoding="utf-8")
    return Path("study.yaml")


def make_plan(
    study: str = STUDY, *, code: str = "0", output: Path = OUTPUT, sft: str = SFT, ppo: str = PPO
) -> Plan:
    file = write_files(study, sft, ppo)
    return plan_study(file, load_study(file), output, code)


def evaluation(successes: int, episodes: int, checkpoint: str = "step_1") -> Evaluation:
    """An evaluation where success has reward 1, failure 0, and every episode two steps."""
    policy = EvaluationRow(
        "policy",
        success_rate=successes / episodes,
        success_interval=wilson_interval(successes, episodes),
        mean_return=successes / episodes,
        invalid_rate=0.25,
        mean_episode_steps=2.0,
        episodes=episodes,
        failures=0,
    )
    return Evaluation(
        environment_id="Bandit",
        seed_range=SeedRange(0, episodes),
        checkpoint=checkpoint,
        temperature=0.0,
        policy=policy,
        random=EvaluationRow("random", success_rate=0.25, mean_return=0.25, episodes=episodes),
        expert=EvaluationRow("expert", success_rate=1.0, mean_return=1.0, episodes=episodes),
        ceiling=EvaluationRow("ceiling", success_rate=1.0),
    )


@dataclass
class Workshop:
    """Takes the place of training and evaluation, and counts the calls."""

    trained: list[str] = field(default_factory=list[str])
    """`sft 0`: algorithm and seed; `sft 0 resume` where it was resumed."""
    evaluated: list[str] = field(default_factory=list[str])
    said: list[str] = field(default_factory=list[str])
    trouble: Callable[[AnyConfig], None] = lambda config: None
    """Called in the middle of every training; may raise."""
    successes: Callable[[AnyConfig], int] = lambda config: 3
    """In the evaluation of each run."""

    @property
    def work(self) -> Work:
        return Work(self.train, self.evaluate, self.said.append, lambda: None)

    def train(self, config: AnyConfig, existing: Literal["refuse", "resume"]) -> Path:
        self.trained.append(_called(config) + (" resume" if existing == "resume" else ""))
        folder = RunFolder.create(Path(config.output), existing=existing)
        folder.config_path.write_text(dump_config(config), encoding="utf-8")
        self.trouble(config)
        (folder.checkpoints_dir / "step_1").mkdir()
        return folder.path

    def evaluate(self, config: AnyConfig, settings: EvaluationSettings) -> Evaluation:
        options = config.environment.options
        temperature, constrained = (
            settings.sampling.temperature,
            settings.sampling.constrain_actions,
        )
        differs = [f"at {temperature:g}"] * (temperature > 0) + ["constrained"] * constrained
        self.evaluated.append(" ".join((_called(config), *options, *differs)))
        found = evaluation(self.successes(config), settings.episodes)
        found = replace(found, temperature=temperature, holds_actions=constrained)
        if not options and not differs:
            RunFolder(Path(config.output)).evaluation_path.write_text(found.to_json(), "utf-8")
        return found


def _called(config: AnyConfig) -> str:
    return f"{type(config).__name__.removesuffix('Config').lower()} {config.seed}"

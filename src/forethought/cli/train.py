"""`forethought train sft|ppo|cnn|dpo|q-sft|ilql|archer`."""

import dataclasses
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Generic, Literal

import tyro

from forethought.algorithms.archer.config import ArcherConfig
from forethought.algorithms.cnn.config import CNNConfig
from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.ilql.config import ILQLConfig
from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.sft.config import SFTConfig
from forethought.cli.flags import Switch, value_of
from forethought.cli.interrupts import continued_by
from forethought.cli.libraries import is_first_process, load_quietly
from forethought.configs.file import AnyConfig, ConfigT, dump_config, load_config
from forethought.errors import ConfigError
from forethought.rollouts.world import require_known
from forethought.runs.checkpoints import list_checkpoints
from forethought.runs.run_folder import RunFolder

Existing = Literal["refuse", "resume", "overwrite"]


@dataclass(frozen=True)
class Train(Generic[ConfigT]):
    """What to train with, and what to do with the run folder."""

    settings: Annotated[ConfigT, tyro.conf.arg(name="")]
    """What is written into the run folder."""

    config: Annotated[str | None, tyro.conf.arg(metavar="FILE.yaml")] = None
    """Settings in a file; flags override them."""

    resume: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Continue the run in this folder, with its own settings."""

    overwrite: Switch = False
    """Delete the run that is in the output folder, and start anew."""

    dry_run: Switch = False
    """Print all settings and what they amount to, then stop; nothing is written."""

    @property
    def existing(self) -> Existing:
        """What to do with a run that is in the output folder."""
        if self.resume is not None:
            return "resume"
        return "overwrite" if self.overwrite else "refuse"


def train_sft(settings: Train[SFTConfig]) -> None:
    """Supervised fine-tuning: learn to answer as the world's expert does.

    By default the tiny model, made from nothing, learns from demonstrations that are
    played on the spot; --model and --data name others.

    Examples:
      forethought train sft --environment.id NumberLine --output runs/sft
      forethought train sft --config configs/quickstart_sft.yaml --dry-run
      forethought train sft --resume runs/sft
    """
    _train("sft", settings)


def train_ppo(settings: Train[PPOConfig]) -> None:
    """Reinforcement learning of thoughts and actions, from rewards (λ-PPO).

    Starts from a model that can answer already, as a rule the run folder of `train sft`.

    Examples:
      forethought train ppo --model runs/sft --environment.id NumberLine --output runs/ppo
      forethought train ppo --config configs/quickstart_ppo.yaml --optimizer.learning-rate 3e-5
      forethought train ppo --resume runs/ppo
    """
    _train("ppo", settings)


def train_cnn(settings: Train[CNNConfig]) -> None:
    """A small network that sees and acts, and says nothing: the baseline without words.

    For worlds with a picture and a fixed list of actions. Its convolutions are made from
    nothing; --model names a model whose vision tower sees for it instead.

    Examples:
      forethought train cnn --environment.id NumberLine --output runs/cnn
      forethought train cnn --config configs/cards/cnn_ez_points.yaml --model runs/ez_points_sft
      forethought train cnn --resume runs/cnn
    """
    _train("cnn", settings)


def train_q_sft(settings: Train[QSFTConfig]) -> None:
    """Q-SFT: learn from stored episodes to act better than whoever played them.

    First one model imitates the data (unless --bc-epochs is 0: then --model does
    already), then a second one learns probabilities that are values. How much the values
    count, β, is set when the run is evaluated.

    Examples:
      forethought train q-sft --data data/wordle --environment.id Wordle \\
          --prompt.format action_only --output runs/wordle_q_sft
      forethought collect --policy data --environment.id Wordle --prompt.format action_only \\
          --episodes 20000 --output data/wordle
      forethought evaluate runs/wordle_q_sft --beta 0 4 16 64
    """
    _train("q-sft", settings)


def train_ilql(settings: Train[ILQLConfig]) -> None:
    """ILQL: learn values of tokens in heads of their own, from stored episodes.

    The baseline of Q-SFT on the same data; --targets makes it Q-learning (CQL) or the
    regression of returns. First one model imitates the data (unless --bc-epochs is 0:
    then --model does already), then a copy of it learns values.

    Examples:
      forethought train ilql --data data/wordle --environment.id Wordle \\
          --prompt.format action_only --output runs/wordle_ilql
      forethought train ilql --data data/wordle --environment.id Wordle \\
          --prompt.format action_only --targets maximum --cql-weight 0.1 --output runs/wordle_cql
      forethought evaluate runs/wordle_ilql --beta 0 4 16 64
    """
    _train("ilql", settings)


def train_archer(settings: Train[ArcherConfig]) -> None:
    """Offline ArCHer: learn what whole answers are worth, and imitate the better ones.

    The other baseline of Q-SFT on the same data. First one model imitates the data (unless
    --bc-epochs is 0: then --model does already), then a copy of it learns values of
    answers, then the first one imitates again, each answer weighted by its advantage.

    Examples:
      forethought train archer --data data/wordle --environment.id Wordle \\
          --prompt.format action_only --output runs/wordle_archer
      forethought train archer --data data/wordle --environment.id Wordle \\
          --prompt.format action_only --beta 4 --output runs/wordle_archer_4
      forethought evaluate runs/wordle_archer
    """
    _train("archer", settings)


def train_dpo(settings: Train[DPOConfig]) -> None:
    """Preference optimization of thoughts and actions, step by step (InteractiveCOT).

    Of two answers in one state, the one after which the episode went better is preferred.
    Starts from a model that can answer already, which is the reference, too.

    Examples:
      forethought train dpo --model runs/sft --environment.id EZPoints --output runs/dpo
      forethought train dpo --config configs/bandit_dpo.yaml --pairing branch --loss-type sigmoid
      forethought train dpo --config configs/bandit_dpo.yaml --data runs/bandit/trajectories
      forethought train dpo --resume runs/dpo
    """
    _train("dpo", settings)


def _train(algorithm: str, settings: Train[ConfigT]) -> None:
    """Trains by `train_NAME` of `algorithms.NAME.train`, which is not imported before the
    settings have been checked: with it comes torch."""
    config = _checked(settings)
    if settings.dry_run:
        _print_plan(config)
        return
    with _session(algorithm, config, settings.existing):
        name = algorithm.replace("-", "_")
        loop = import_module(f"forethought.algorithms.{name}.train")
        getattr(loop, f"train_{name}")(config, existing=settings.existing)


def sft_defaults(words: Sequence[str]) -> Train[SFTConfig]:
    """Defaults of `train sft`: those of the file, or of the run, that was named."""
    return Train(_defaults(words, SFTConfig))


def ppo_defaults(words: Sequence[str]) -> Train[PPOConfig]:
    """Defaults of `train ppo`, likewise."""
    return Train(_defaults(words, PPOConfig))


def cnn_defaults(words: Sequence[str]) -> Train[CNNConfig]:
    """Defaults of `train cnn`, likewise."""
    return Train(_defaults(words, CNNConfig))


def q_sft_defaults(words: Sequence[str]) -> Train[QSFTConfig]:
    """Defaults of `train q-sft`, likewise."""
    return Train(_defaults(words, QSFTConfig))


def ilql_defaults(words: Sequence[str]) -> Train[ILQLConfig]:
    """Defaults of `train ilql`, likewise."""
    return Train(_defaults(words, ILQLConfig))


def archer_defaults(words: Sequence[str]) -> Train[ArcherConfig]:
    """Defaults of `train archer`, likewise."""
    return Train(_defaults(words, ArcherConfig))


def dpo_defaults(words: Sequence[str]) -> Train[DPOConfig]:
    """Defaults of `train dpo`, likewise."""
    return Train(_defaults(words, DPOConfig))


def _defaults(words: Sequence[str], kind: type[ConfigT]) -> ConfigT:
    file, run = value_of(words, "--config"), value_of(words, "--resume")
    if run is not None:
        return _stored(run, kind)
    return kind() if file is None else load_config(Path(file), kind)


def _stored(run: str, kind: type[ConfigT]) -> ConfigT:
    """The settings of a run; the run may have been moved since it was started."""
    return replace(load_config(RunFolder.open(Path(run)).config_path, kind), output=run)


def _checked(settings: Train[ConfigT]) -> ConfigT:
    """The settings to train with.

    Raises:
        ConfigError: a run is to be resumed with settings that are not its own.
    """
    config = settings.settings
    if settings.resume is None:
        return config
    for flag, given in (("config", settings.config), ("overwrite", settings.overwrite)):
        if given:
            raise ConfigError(
                f"--resume and --{flag} exclude each other — a run is resumed with its own settings"
            )
    stored = _stored(settings.resume, type(config))
    for name, own, other in differences(stored, config):
        raise ConfigError(
            f"{name} is {other!r}, but {own!r} in {settings.resume} — a run is resumed with its "
            "own settings: leave that out, or start another run with another --output"
        )
    return stored


def differences(first: Any, second: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Fields of two settings that are not equal, by dotted name, with both values."""
    for field in dataclasses.fields(first):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if dataclasses.is_dataclass(one):
            yield from differences(one, other, f"{prefix}{field.name}.")
        elif one != other:
            yield prefix + field.name, one, other


@contextmanager
def _session(algorithm: str, config: AnyConfig, existing: Existing) -> Generator[None]:
    """Around training: quiet libraries; settings that cannot work are refused before anything
    is written or deleted; what to do after an interruption; and what to do next."""
    with continued_by(lambda: _way_on(algorithm, config)):
        require_known(config.environment)  # At once; the libraries below take seconds to load.
        load_quietly(threads=config.compute.threads)
        if existing != "resume":
            from forethought.cli.plan import check

            check(config)
        before = _newest_checkpoint(config) if existing == "resume" else None
        yield
    if is_first_process():
        if before is not None and before == _newest_checkpoint(config):
            print(f"{config.output}: had finished already, at {before}", file=sys.stderr)
        print(config.output)
        print(f"next: forethought evaluate {config.output}")


def _newest_checkpoint(config: AnyConfig) -> str | None:
    """Its name; None where there is none."""
    checkpoints = list_checkpoints(RunFolder(Path(config.output)).checkpoints_dir)
    return checkpoints[-1].name if checkpoints else None


def _way_on(algorithm: str, config: AnyConfig) -> str | None:
    """How a run that was stopped goes on; None where it had not begun."""
    folder = RunFolder(Path(config.output))
    if not folder.is_run or folder.config_path.read_text(encoding="utf-8") != dump_config(config):
        return None
    has_checkpoint = _newest_checkpoint(config) is not None
    verb = "continue" if has_checkpoint else "there is no checkpoint yet; start over"
    return f"{verb} with: forethought train {algorithm} --resume {config.output}"


def _print_plan(config: AnyConfig) -> None:
    from forethought.cli.plan import make_plan

    plan = make_plan(config)
    print(dump_config(config), end="")
    for line in plan:
        print(f"# {line}")

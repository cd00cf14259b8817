"""Episodes that workers play, in any number of processes: the trainer's side, and theirs."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from tqdm import tqdm

from forethought.chat.remote import RemotePolicy
from forethought.configs.acting import GenerationConfig
from forethought.configs.contract import RolloutLanguageConfig
from forethought.environments.contract import Past
from forethought.environments.vector import Act, Failed, Reset, Runner
from forethought.errors import EnvironmentUnusableError, PolicyError, StorageError
from forethought.generation.contract import GenerationRequest
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.generation.published import Publisher, Weights, read_current
from forethought.models.encoding import Encoder
from forethought.models.loading import load_outline
from forethought.prompts.history import past_step, with_history
from forethought.rollouts.board import Board, Round, player_name
from forethought.rollouts.collector import Collected
from forethought.rollouts.slot import Cursor, Episode, Start
from forethought.rollouts.task import Task, open_task
from forethought.runs.checkpoints import model_source
from forethought.runs.run_folder import RunFolder
from forethought.training.run import Run
from forethought.training.start import training_collector
from forethought.types import Prompt, Trajectory

LOOK_S = 0.1
"""Between two looks at what was handed in, or is wished for."""
READ_S = 0.5
"""Between two looks at which weights are published, in the middle of an episode."""


class WorkedConfig(RolloutLanguageConfig, Protocol):
    """Settings of an algorithm whose episodes workers can play."""

    @property
    def generation(self) -> GenerationConfig: ...

    @property
    def group_size(self) -> int:
        """Consecutive episodes that start from one seed."""
        ...


class WorkedCollector:
    """Collects whole episodes that workers play; a round is one episode of every slot.

    Rounds are numbered, and their episodes are those that a `Collector` of as many slots would
    play. With `max_staleness` k, the k rounds after the present one may be played meanwhile.
    """

    def __init__(
        self,
        task: Task,
        runner: Runner,
        policy: HuggingFacePolicy,
        config: WorkedConfig,
        run: Run,
        on_step: Callable[[], object],
    ) -> None:
        """
        Args:
            runner: of one slot or more, for what the critic is to see behind a cut.
            policy: whose weights are published; judges states, if it has a critic.
            on_step: called once for every step that was played.
        """
        self._task, self._runner, self._policy = task, runner, policy
        folder, shared = run.folder.published_dir, config.generation.shared_folder
        keep = config.generation.max_staleness + 1
        self._publisher = Publisher(policy, folder, keep=keep, shared=shared)
        self._board, self._config = Board(run.folder.work_dir), config
        self._on_step = on_step
        self._round = 0
        self._wished = 0
        """Rounds that workers know of."""
        self._board.clear()

    def cursors(self) -> list[Cursor]:
        """The last episode of every slot, for a checkpoint."""
        slots = self._config.rollout.num_envs
        return [Cursor(slot + (self._round - 1) * slots, (), 0.0) for slot in range(slots)]

    def restore(self, cursors: Sequence[Cursor]) -> None:
        """Goes on after these episodes."""
        self._round = self._wished = cursors[0].episode // self._config.rollout.num_envs + 1

    def collect_round(self) -> Collected:
        """The episodes of the next round, in their order.

        Raises:
            StorageError: the disk refuses, or nobody plays.
        """
        self._publisher.current()
        settings, slots = self._config.generation, self._config.rollout.num_envs
        while self._wished <= self._round + settings.max_staleness:
            first = self._wished * slots
            self._board.wish(Round(self._wished, range(first, first + slots)))
            self._wished += 1
        present = Round(self._round, range(self._round * slots, (self._round + 1) * slots))
        trajectories = self._await(present)
        self._board.finish(present)
        self._round += 1
        trajectories = [self._judged(trajectory) for trajectory in trajectories]
        episodes = [
            Episode(number, sum(s.reward for s in t.steps), len(t.steps), t.success)
            for number, t in zip(present.episodes, trajectories, strict=True)
            if t.failure is None
        ]
        return Collected(trajectories, episodes)

    def _await(self, present: Round) -> list[Trajectory]:
        found: dict[int, Trajectory] = {}
        settings = self._config.generation
        oldest = self._policy.version - settings.max_staleness
        heard_s = time.monotonic()
        while len(found) < len(present.episodes):
            for episode in present.episodes:
                if episode in found or (trajectory := self._board.played(episode)) is None:
                    continue
                heard_s = time.monotonic()
                if any(step.policy_version < oldest for step in trajectory.steps):
                    _say(f"episode {episode} is by weights before v{oldest}; it is played again")
                    self._board.forget([episode])
                    continue
                found[episode] = trajectory
                for _ in trajectory.steps:
                    self._on_step()
            for episode in self._board.free_claims(settings.worker_silence_s):
                _say(f"the player of episode {episode} is silent; it is played again")
            if time.monotonic() - heard_s > settings.patience_s:
                raise StorageError(
                    f"no episode was handed in for {settings.patience_s:g} s — start workers "
                    "(`forethought work --run RUN`), then go on with --resume"
                )
            if len(found) < len(present.episodes):
                time.sleep(LOOK_S)
        return [found[episode] for episode in present.episodes]

    def _judged(self, trajectory: Trajectory) -> Trajectory:
        """With the critic's values, which no worker has."""
        if self._policy.module.value_head is None or not trajectory.steps:
            return trajectory
        prompts = [step.prompt for step in trajectory.steps]
        is_cut = not trajectory.steps[-1].terminated
        if is_cut:
            prompts.append(self._prompt_behind(trajectory))
        for key, prompt in enumerate(prompts):
            self._policy.submit(GenerationRequest(key, prompt, 0, 0, 1.0))
        values: dict[int, float | None] = {}
        while results := self._policy.advance():
            values |= {result.key: result.value for result in results}
        steps = [replace(step, value=values[key]) for key, step in enumerate(trajectory.steps)]
        bootstrap = values[len(steps)] if is_cut else None
        return replace(trajectory, steps=tuple(steps), bootstrap_value=bootstrap)

    def _prompt_behind(self, trajectory: Trajectory) -> Prompt:
        """What the policy would be asked after the last step: the episode is played once more.

        Raises:
            EnvironmentUnusableError: it cannot be.
        """
        past: list[Past] = []
        prompter = with_history(self._task.prompter)
        commands = [Act(step.action.action) for step in trajectory.steps]
        observation = None
        for command in (Reset(trajectory.seed), *commands):
            self._runner.send(0, command)
            (reply,) = self._runner.receive()
            if isinstance(reply, Failed):
                raise EnvironmentUnusableError(
                    f"{self._task.id}: seed {trajectory.seed} cannot be played again: "
                    f"{reply.failure}: {reply.message}"
                )
            if observation is not None and isinstance(command, Act):
                choices = observation.admissible_actions or self._runner.actions
                past.append(past_step(observation, command.action, choices))
            observation = reply.observation
        assert observation is not None
        return self._policy.prompt(prompter.messages(observation, past))


@dataclass(frozen=True)
class WorkerSettings:
    """What one worker does."""

    run: Path
    """The run's folder, as this machine sees it."""
    slots: int
    """Episodes at the same time."""


def work(settings: WorkerSettings, config: WorkedConfig) -> int:
    """Plays episodes for a run until it ends, and returns how many.

    Raises:
        ForethoughtError: whatever a person can fix.
    """
    board = Board(RunFolder(settings.run).work_dir)
    outline = load_outline(model_source(config.model))
    task = open_task(
        config.environment, config.prompt, default_image_size=outline.preferred_image_size
    )
    published = _Published(RunFolder(settings.run).published_dir)
    policy = RemotePolicy(
        Encoder(outline.model, outline.processor), config.generation, published=published
    )
    player, count = player_name(), 0
    with task.runner(settings.slots, config.environment.workers) as runner:
        collector = training_collector(task, runner, policy, config)(group_size=config.group_size)
        while not board.is_over:
            episodes = board.claim(player, settings.slots)
            if not episodes:
                time.sleep(LOOK_S)
                continue
            published.read()
            try:
                with board.renewing(player, episodes):
                    played = collector.collect_from([Start(episode) for episode in episodes])
            except BaseException:
                board.release(player, episodes)
                raise
            for episode, trajectory in zip(episodes, played, strict=True):
                count += board.hand_in(player, episode, trajectory)
    policy.close()
    return count


def await_run(run: Path, patience_s: float) -> None:
    """Returns when a trainer wishes for episodes, for a worker may come first, or when the run is
    over, for it may come last.

    Raises:
        StorageError: none came in time.
    """
    board, deadline_s = Board(RunFolder(run).work_dir), time.monotonic() + patience_s
    while not (board.is_open or board.is_over):
        if time.monotonic() > deadline_s:
            raise StorageError(f"{run}: no trainer has wished for episodes in {patience_s:g} s")
        time.sleep(LOOK_S)


class _Published:
    """Which weights are published, read from the disk now and then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read_s = -READ_S
        self._weights: tuple[Weights, ...] = ()

    def read(self) -> None:
        """Reads it now."""
        self._weights, self._read_s = read_current(self._folder), time.monotonic()

    def __call__(self) -> tuple[Weights, ...]:
        if time.monotonic() - self._read_s > READ_S:
            self.read()
        if not self._weights:
            raise PolicyError(f"{self._folder}: no weights are published there")
        return self._weights


def _say(line: str) -> None:
    tqdm.write(f"work: {line}", file=sys.stderr)

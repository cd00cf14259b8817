"""ALFWorld: household tasks, by command, in a room that is known only as far as it was seen."""

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from forethought.configs.parts import ResponseFormat
from forethought.environments.alfworld.engine import Engine
from forethought.environments.alfworld.expert import advise
from forethought.environments.alfworld.games import Game
from forethought.environments.alfworld.generator import LIMIT_STEPS, GameSource, open_games
from forethought.environments.alfworld.image import (
    MAX_SIZE,
    MIN_SIZE,
    SMALLEST_WITH_LABELS,
    draw_scene,
)
from forethought.environments.alfworld.notes import NOTHING_HAPPENS, Exchange, Notes
from forethought.environments.alfworld.package import SPLITS, Split
from forethought.environments.alfworld.progress import (
    CHANGING,
    CONDITIONS,
    Reward,
    RewardParts,
    Situation,
    conditions_met,
    sort_out,
)
from forethought.environments.alfworld.prompt import ALFWorldPrompter, alfworld_summary
from forethought.environments.alfworld.thoughts import alfworld_facts
from forethought.environments.contract import (
    Ceiling,
    ExpertAction,
    Prompter,
    Summarize,
    Transition,
    Wording,
)
from forethought.environments.parts import Episode, is_flag, require_option, require_whole_number
from forethought.types import Image, Metric, Observation, ThoughtFacts

SplitOption = Literal["by_seed", "train", "valid_seen", "valid_unseen"]
View = Literal["text", "image", "both"]
Match = Literal["exact", "reference"]
Expert = Literal["direct", "scan"]

EVALUATION_SEEDS = 1 << 61
"""Held-out episodes have seeds from here on (`rollouts/seeding.py`)."""


class Snapshot(NamedTuple):
    """A point of an episode: enough to get there again by replay."""

    seed: int
    actions: tuple[str, ...]


class ALFWorld:
    """Bring, clean, heat, cool or look at household things.

    Description: ALFWorld (Shridhar et al. 2021) on the package's own rules, planner and
    grammar. An agent in one of 120 rooms gets a task and must find out where things
    are: receptacles show their contents when it is before them and they are open.

    Observation: the engine's text after the last command (`view` text or both), and a
    schematic image of what is in front of the agent (image or both); the commands that
    are admissible now are listed. After an inadmissible command the text is "Nothing happens."

    Actions: open text. Commands such as "go to drawer 1", "open drawer 1", "take mug 1 from
    desk 1", "move mug 1 to shelf 2", "heat mug 1 with microwave 1", "use desklamp 1", "look".

    Rewards: 50 for reaching the goal, 1 for each of its conditions that is met for the first
    time, -1 for an inadmissible command; `reward=reference` pays the share of conditions met
    at every step instead, as RL4VLM's public code does.

    Start: the game of the seed: seed modulo the number of games. Seeds of
    held-out episodes play `valid_seen`, others `train`, unless `split` names one.

    End: terminated when the goal is reached, truncated after `limit_steps` commands.

    Success: the goal is reached ("won").

    Ceiling: 100 %: every generated game is solved by the expert within 50 steps, every
    official one is marked solvable.

    Arguments:
        split: by_seed, train, valid_seen or valid_unseen. Unseen games have other rooms and
            other pairs of thing and place.
        games: folder of games in the official file tree; by default that of ALFWORLD_DATA,
            and where that is not set, generated ones.
        limit_steps: 1 to 1000; the papers' is 50 (30 in Q-SFT).
        reward: paper or reference.
        match: exact, or reference: the first admissible command that the text contains.
        view: text, image or both.
        labels: whether the image names what it shows.
        expert: direct, or scan: when it searches, its thoughts go through what is left first.
        image_size: side of the image, 48 to 1024 pixels.

    Version history:
        v0: first version.
    """

    def __init__(
        self,
        split: SplitOption = "by_seed",
        games: str | None = None,
        limit_steps: int = LIMIT_STEPS,
        reward: Reward = "paper",
        match: Match = "exact",
        view: View = "text",
        labels: bool = False,
        expert: Expert = "direct",
        image_size: int = 300,
    ) -> None:
        splits = get_args(SplitOption)
        require_option(split in splits, "split", split, ", ".join(splits))
        require_option(games is None or bool(games), "games", games, "a folder, or nothing")
        require_whole_number("limit_steps", limit_steps, 1, 1000)
        require_option(reward in get_args(Reward), "reward", reward, "paper or reference")
        require_option(match in get_args(Match), "match", match, "exact or reference")
        require_option(view in get_args(View), "view", view, "text, image or both")
        require_option(is_flag(labels), "labels", labels, "True or False")
        require_option(expert in get_args(Expert), "expert", expert, "direct or scan")
        require_whole_number("image_size", image_size, MIN_SIZE, MAX_SIZE)
        require_option(
            not labels or image_size >= SMALLEST_WITH_LABELS,
            "image_size",
            image_size,
            f"{SMALLEST_WITH_LABELS} or more with labels",
        )
        self._split: SplitOption = split
        self._sources: dict[Split, GameSource] = {
            name: open_games(games, name)
            for name in SPLITS
            if split == name or (split == "by_seed" and name != "valid_unseen")
        }
        self._held_out: Split = "valid_seen" if split == "by_seed" else split
        self._reward: Reward = reward
        self._match: Match = match
        self._expert_scans = expert == "scan"
        self._view: View = view
        self._labels = labels
        self._image_size = image_size
        self._engine = Engine()
        self._episode = Episode(limit_steps)
        self._seed = 0
        self._past: list[Exchange] = []
        self._notes = Notes()
        self._distinct: set[str] = set()
        self._inadmissible = 0

    @property
    def actions(self) -> None:
        """Commands are open text."""
        return

    @property
    def ceiling(self) -> Ceiling:
        """Every game can be solved."""
        return Ceiling(1.0, f"exact: {self.label} games are kept only where they can be solved")

    @property
    def held_out_episodes(self) -> int:
        """The games that held-out seeds go through, one after the other."""
        return len(self._sources[self._held_out])

    @property
    def label(self) -> str:
        """ "official" or "generated": which games are played."""
        folder = next(iter(self._sources.values()))
        return "official" if folder.is_official else "generated"

    def reset(self, seed: int) -> Observation:
        """Begins the game that the seed stands for, modulo the number of games."""
        self._begin(seed)
        return self.observation()

    def observation(self) -> Observation:
        """The engine's last text, the schematic image, or both, with the admissible commands."""
        text = self._past[-1].text
        return Observation(
            text=None if self._view == "image" else text,
            image=None if self._view == "text" else self._image(),
            admissible_actions=self._engine.commands,
            state_key=self.state_key(),
            goal=self._notes.goal,
            task_type=self._game.goal.task_type.label,
        )

    def step(self, action: str) -> Transition:
        """Executes an admissible command; any other text changes nothing and costs 1.

        Raises:
            RuntimeError: the episode is over.
        """
        self._episode.require_open()
        command = self.resolve_action(action, self._engine.commands)
        admissible = command is not None
        if command is None:
            text = NOTHING_HAPPENS
            self._inadmissible += 1
            self._distinct.add(action)
        else:
            text = self._engine.step(command)
            self._situation = sort_out(self._engine.facts())
            self._met = conditions_met(self._game.goal, self._situation)
        self._note(Exchange(action if command is None else command, text))
        won = self._engine.won
        reward = self._paid.pay(met=self._met, won=won, admissible=admissible)
        return self._episode.record(reward, terminated=won)

    def legal_actions(self) -> tuple[str, ...]:
        """The admissible commands; none once the episode is over."""
        return () if self._episode.is_over else self._engine.commands

    def expert(self) -> ExpertAction:
        """The command of an expert that knows what the agent can know, with thoughts.

        Raises:
            RuntimeError: the episode is over.
        """
        self._episode.require_open()
        return advise(self._game.goal, self._notes, self._engine.commands, scans=self._expert_scans)

    def thought_facts(self, response: str) -> ThoughtFacts:
        """What a response claims about places, the hand and the task, and what can be known."""
        return alfworld_facts(
            response, goal=self._game.goal, notes=self._notes, commands=self._engine.commands
        )

    def resolve_action(self, text: str, admissible: Sequence[str]) -> str | None:
        """The admissible command that a text names, by the option `match`."""
        if self._match == "reference":
            return next((command for command in admissible if command in text), None)
        command = text.strip()
        return command if command in admissible else None

    def prompter(self, response_format: ResponseFormat, wording: Wording) -> Prompter:
        """ALFWorld's own prompt, short or as published."""
        return ALFWorldPrompter(response_format, wording)

    @property
    def summarize(self) -> Summarize | None:
        """The summary of an episode in about a hundred tokens; None where only images are shown."""
        return None if self._view == "image" else alfworld_summary

    def success(self) -> bool:
        """Whether the goal is reached."""
        return self._engine.won

    def metrics(self) -> tuple[Metric, ...]:
        """Progress and the parts of the return, what was inadmissible (in all, and different
        texts), and whether the game is an official one."""
        return (
            Metric("progress", self._met / self._paid.conditions),
            Metric("goal_reward", self._paid.goal),
            Metric("progress_reward", self._paid.progress),
            Metric("penalty", self._paid.penalty),
            Metric("inadmissible", float(self._inadmissible)),
            Metric("distinct_inadmissible", float(len(self._distinct))),
            Metric("official", float(self._game.is_official)),
        )

    def state_key(self) -> str:
        """A digest of game, facts and last text; equal in equal states of one game."""
        held = sorted(fact for fact in self._engine.facts() if fact.predicate in CHANGING)
        whole = repr((self._game.folder, held, self._past[-1].text))
        return hashlib.sha256(whole.encode()).hexdigest()[:32]

    def snapshot(self) -> Snapshot:
        """The present point of the episode."""
        return Snapshot(self._seed, tuple(e.action for e in self._past if e.action is not None))

    def restore(self, snapshot: Snapshot) -> Observation:
        """Returns to a snapshot, its own or that of another instance with equal options."""
        self._begin(snapshot.seed)
        for action in snapshot.actions:
            self.step(action)
        return self.observation()

    def past(self) -> tuple[Exchange, ...]:
        """Commands and texts of the episode so far, the introduction first."""
        return tuple(self._past)

    def render(self) -> Image:
        """The schematic image, whatever `view` shows to the agent."""
        return self._image()

    def close(self) -> None:
        """Gives the planner's library back."""
        self._engine.close()

    # --- inside ----------------------------------------------------------------------------

    def _begin(self, seed: int) -> None:
        is_training = self._split == "by_seed" and seed < EVALUATION_SEEDS
        split: Split = "train" if is_training else self._held_out
        source = self._sources[split]
        self._seed = seed
        self._game: Game = source.game(seed % len(source), self._engine)
        introduction = self._engine.start(self._game.text)
        self._past, self._notes = [], Notes()
        self._note(Exchange(None, introduction))
        self._distinct, self._inadmissible = set(), 0
        self._situation: Situation = sort_out(self._engine.facts())
        self._met = conditions_met(self._game.goal, self._situation)
        conditions = CONDITIONS[self._game.goal.task_type]
        self._paid = RewardParts(self._reward, conditions, most_met=self._met)
        self._episode.begin()

    def _note(self, exchange: Exchange) -> None:
        self._past.append(exchange)
        self._notes = self._notes.after(exchange)

    def _image(self) -> Image:
        return draw_scene(self._image_size, self._situation, labels=self._labels)

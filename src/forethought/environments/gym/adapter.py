"""A Gymnasium environment behind our contract."""

import io
import math
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout, suppress
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from forethought.configs.parts import ResponseFormat
from forethought.environments.contract import Ceiling, ExpertAction, Prompter, Transition, Wording
from forethought.environments.gym.calling import brief, calling
from forethought.environments.gym.grid import GridKnowledge, is_grid
from forethought.environments.gym.knowledge import (
    LAYOUTS,
    GymEnv,
    Knowledge,
    SpacesAlone,
    TableKnowledge,
    action_names,
    has_table,
    value_names,
)
from forethought.environments.gym.making import make_gym
from forethought.environments.gym.rendering import Renderer
from forethought.environments.gym.template import TemplatePrompter, read_template
from forethought.environments.gym.words import can_be_said, observation_problem
from forethought.environments.parts import (
    Episode,
    is_whole_number,
    require_option,
    require_whole_number,
)
from forethought.errors import ConfigError, EnvironmentUnusableError
from forethought.types import Image, Metric, Observation

PREFIX = "gym:"
DEFAULT_LIMIT = 100
"""Steps in an episode where neither the registration nor the environment names a limit."""
View = Literal["text", "image", "both"]


class NoWordsError(ConfigError):
    """No words are known for what the environment observes: it is played by its images."""


class GymnasiumEnvironment:
    """A registered Gymnasium environment, by its id.

    Description: `gym:FrozenLake-v1`, or with the module to import first,
    `gym:minigrid:MiniGrid-DoorKey-5x5-v0`. Spaces of actions: Discrete and Text; a Box of one
    number where `bins` is given.

    Observation: what the environment observes in words (`view` text), what it renders (image), or
    both. A `mission` is the goal.

    Actions: names from `actions`, from the environment's own enumeration, or numbers.

    Rewards: the environment's. A text that names no action changes nothing and pays 0, but counts
    as a step.

    End: terminated and truncated as the environment says; truncated after `limit_steps`, too.

    Success: it terminated, with a return above `success_above`.

    Ceiling: where the transition table is open (FrozenLake, Taxi, CliffWalking), exact by dynamic
    programming; otherwise not known.

    Arguments:
        id: as above, after `gym:`.
        view: text, image or both.
        image_size: side of the image, to which `render()` is resized.
        actions: names with commas between them, in the order of the numbers.
        bins: number of values of a one-dimensional Box that can be chosen, 2 to 1000.
        goal: what to do, in words, where the observation has no mission.
        template: a prompt with {goal}, {text}, {actions} and {fields} to be filled in, or a file
            that holds one.
        limit_steps: of an episode; by default the registration's, or else 100.
        success_above: return above which an episode that terminated is a success.
        options: keywords of the environment's constructor.

    Every exception of the environment's own code is a `ForethoughtError` here that names the call.
    """

    def __init__(
        self,
        id: str,
        view: View = "text",
        image_size: int = 300,
        actions: str = "",
        bins: int = 0,
        goal: str = "",
        template: str = "",
        limit_steps: int | None = None,
        success_above: float | None = None,
        **options: Any,
    ) -> None:
        require_option(view in ("text", "image", "both"), "view", view, "text, image or both")
        require_whole_number("image_size", image_size, 32, 2048)
        if limit_steps is not None:
            require_whole_number("limit_steps", limit_steps, 1, 100_000)
        if success_above is not None:
            require_option(_is_number(success_above), "success_above", success_above, "a number")
        self._template = read_template(str(template))
        self._view: View = view
        self.id = f"{PREFIX}{id}"
        self._environment = make_gym(self.id, renders=view != "text", options=options)
        self._space = self._environment.observation_space
        self._renderer = Renderer(self.id, self._environment, image_size)
        named = tuple(name.strip() for name in str(actions).split(",")) if actions else ()
        self._values = value_names(self.id, self._environment.action_space, bins)
        names = self._values or named
        self._knowledge = self._known(names)
        self._is_text = isinstance(self._environment.action_space, spaces.Text)
        self._goal = str(goal)
        self._threshold = success_above
        self._limit = limit_steps
        self._episode = Episode(limit_steps or DEFAULT_LIMIT)
        self._terminated = False
        self._begin(0)
        if self._knowledge.has_expert:
            self.expert: Callable[[], ExpertAction] = self._expert
        ceiling = self._knowledge.ceiling(self._episode.limit_steps)
        if ceiling is not None and success_above is None:
            self.ceiling: Ceiling = ceiling
        self._episode.is_over = True

    @property
    def actions(self) -> tuple[str, ...] | None:
        """Names of the actions; None where they are open text."""
        return None if self._is_text else self._knowledge.actions

    def reset(self, seed: int) -> Observation:
        """Starts the episode of the seed."""
        self._begin(seed)
        return self.observation()

    def observation(self) -> Observation:
        """The observation in words, the rendered image, or both."""
        return self._seen

    def step(self, action: str) -> Transition:
        """Executes a named action; any other text changes nothing, pays 0 and counts as a step.

        Raises:
            RuntimeError: the episode is over.
        """
        self._episode.require_open()
        executed = self._executed(action)
        if executed is None:
            return self._episode.record(0.0, terminated=False)
        call = f"step({brief(executed)})"
        with calling(self.id, call, "expected observation, reward, terminated, truncated, info"):
            observed, paid, ended, cut, _ = self._environment.step(executed)
            reward, terminated, truncated = float(paid), bool(ended), bool(cut)
        self._observed = self._readable(call, observed)
        if isinstance(executed, int | np.integer):
            self._knowledge.acted(int(executed))
        transition = self._episode.record(reward, terminated=terminated)
        if truncated and not terminated:
            self._episode.is_over = True
            transition = transition._replace(truncated=True)
        self._terminated = terminated
        self._seen = self._look()
        return transition

    def legal_actions(self) -> tuple[str, ...]:
        """All actions until the episode is over."""
        if self._episode.is_over:
            return ()
        return self._knowledge.actions or ("",)

    def success(self) -> bool:
        """Whether it terminated with a return above the threshold, or as the environment counts."""
        if not self._terminated:
            return False
        if self._threshold is None and self._knowledge.wins_by_ending:
            return True
        return self._episode.total_reward > (self._threshold or 0.0)

    def metrics(self) -> tuple[Metric, ...]:
        """Nothing beyond return and success."""
        return ()

    def prompter(self, response_format: ResponseFormat, wording: Wording) -> Prompter:
        """The user's template, or the default one."""
        fields = self._knowledge.fields if response_format == "thoughts" else ()
        return TemplatePrompter(self._template, self.actions, (*fields, "action"))

    def render(self) -> Image | str:
        """The image that the agent sees, else its text."""
        return self._seen.text or "" if self._seen.image is None else self._seen.image

    def close(self) -> None:
        """Closes the wrapped environment; what it raises on leaving concerns nobody."""
        with suppress(Exception):
            self._environment.close()

    # What `forethought envs` and the check before a run say of it.

    @property
    def wrapped(self) -> GymEnv:
        """Gymnasium's environment."""
        return self._environment

    @property
    def has_expert(self) -> bool:
        """Whether there is one to learn from."""
        return self._knowledge.has_expert

    @property
    def limit_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return self._episode.limit_steps

    @property
    def success_rule(self) -> str:
        """When an episode counts as a success, in words."""
        if self._threshold is None and self._knowledge.wins_by_ending:
            return "it terminated"
        return f"it terminated, with a return above {self._threshold or 0:g}"

    @property
    def state_key_warning(self) -> str:
        """What `state_key` cannot tell apart, in words; "" where it is made of the whole state."""
        if self._knowledge.knows_state:
            return ""
        return (
            "warning: state_key is made of the observation alone, so GiGPO takes states that "
            "look alike for the same"
        )

    def _expert(self) -> ExpertAction:
        self._episode.require_open()
        return self._knowledge.expert(self._observed)

    def _begin(self, seed: int) -> None:
        call, expected = f"reset(seed={seed})", "expected a pair, observation and info"
        # MiniGrid says on stdout what it has tried.
        with calling(self.id, call, expected), redirect_stdout(io.StringIO()):
            given: Any = self._environment.reset(seed=seed)
        is_pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping)
        if not is_pair:
            raise EnvironmentUnusableError(f"{self.id}: {call} gave {brief(given)} — {expected}")
        self._observed = self._readable(call, given[0])
        self._terminated = False
        self._episode.limit_steps = self._limit or self._own_limit()
        self._knowledge.begin()
        self._episode.begin()
        self._seen = self._look()

    def _readable(self, call: str, observed: Any) -> Any:
        """The observation, if it is one of its space that can be put into words.

        Raises:
            EnvironmentUnusableError: it is not.
        """
        problem = observation_problem(self._space, observed)
        if problem is not None:
            raise EnvironmentUnusableError(f"{self.id}: {call}: {problem}")
        return observed

    def _look(self) -> Observation:
        words = self._knowledge.words(self._observed)
        image = None if self._view == "text" else self._renderer.image()
        known = f"{words}\0{self._knowledge.state()}".encode("utf-8", "surrogatepass")
        digest = blake2b(known, digest_size=16)
        if image is not None:
            digest.update(image.data)
        return Observation(
            text=None if self._view == "image" else words,
            image=image,
            admissible_actions=None,
            state_key=digest.hexdigest(),
            goal=self._goal or self._mission() or self._knowledge.goal,
            task_type=self.id.removeprefix(PREFIX),
        )

    def _mission(self) -> str:
        observed = self._observed
        return str(observed.get("mission", "")) if isinstance(observed, dict) else ""

    def _executed(self, action: str) -> Any:
        """What the environment is given for a text; None: the text names nothing it takes."""
        space = self._environment.action_space
        if isinstance(space, spaces.Text):
            return action if space.contains(action) else None
        if action not in self._knowledge.actions:
            return None
        index = self._knowledge.actions.index(action)
        if isinstance(space, spaces.Box):
            low, high = float(space.low.flat[0]), float(space.high.flat[0])
            value = low + (high - low) * index / (len(self._values) - 1)
            return np.full(space.shape, value, space.dtype)
        assert isinstance(space, spaces.Discrete)
        return int(space.start) + index

    def _known(self, named: tuple[str, ...]) -> Knowledge:
        environment = self._environment
        space = environment.action_space
        if isinstance(space, spaces.Discrete) and has_table(environment):
            layout = LAYOUTS[type(environment.unwrapped).__name__]
            names = action_names(environment, named or layout.actions)
            return TableKnowledge(environment, names)
        names = named
        if isinstance(space, spaces.Discrete):
            names = action_names(environment, named)
        if is_grid(environment):
            with calling(self.id, "reset(seed=0)", "expected a room"):
                return GridKnowledge(environment, names)
        if self._view != "image" and not can_be_said(self._space):
            raise NoWordsError(
                f"{self.id} observes {brief(self._space)}, which no words are known for — take "
                "environment.options view=image"
            )
        return SpacesAlone(environment, names)

    def _own_limit(self) -> int:
        spec = self._environment.spec
        inner: Any = getattr(self._environment.unwrapped, "max_steps", None)
        registered = None if spec is None else spec.max_episode_steps
        return registered or (int(inner) if is_whole_number(inner, 1, 100_000) else DEFAULT_LIMIT)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)

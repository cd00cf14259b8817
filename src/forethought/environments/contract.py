"""What every environment offers, and what it may offer besides.

Language agents read an `Observation` and respond with a string, and any string is a response.
The verbs are Gymnasium's; `GymnasiumView` makes a `gymnasium.Env` of any environment here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from forethought.configs.parts import ResponseFormat
from forethought.errors import ConfigError
from forethought.types import Image, Message, Metric, Observation, ThoughtFacts


class Transition(NamedTuple):
    """What one action did."""

    reward: float
    terminated: bool
    truncated: bool


class ExpertAction(NamedTuple):
    """What the environment's own expert would do."""

    action: str
    fields: tuple[tuple[str, str], ...]
    """The response's JSON fields before `action`, in order, values as JSON text:
    `(("cards", "[7, 5]"), ("formula", '"7+"'), ("thoughts", '"..."'))`."""


@dataclass(frozen=True)
class Ceiling:
    """The best success rate that any policy can reach."""

    success_rate: float
    method: str
    """How it is known: "exact: ..." or "estimated: ..."."""


class Environment(Protocol):
    """Rules of an environment. All that is not listed here is optional (`With…` below).

    Deterministic given the seed of `reset` and the sequence of actions: replaying
    both restores any state. That is how episodes survive a kill or a crash.
    """

    @property
    def actions(self) -> tuple[str, ...] | None:
        """Every action of this environment, or None where actions are open text."""
        ...

    def reset(self, seed: int) -> Observation:
        """Starts the episode of `seed`."""
        ...

    def observation(self) -> Observation:
        """The present state as the agent may know it."""
        ...

    def step(self, action: str) -> Transition:
        """Executes any string. One that names no action of this environment changes
        nothing but counts as a step, at the environment's penalty for it.

        Raises:
            RuntimeError: the episode is over; `reset` first.
        """
        ...

    def legal_actions(self) -> tuple[str, ...]:
        """Actions that the rules allow in the present state, in a fixed order."""
        ...

    def success(self) -> bool:
        """Whether the episode, as played so far, meets the environment's success definition."""
        ...

    def metrics(self) -> tuple[Metric, ...]:
        """Further numbers of the episode as played so far; may be empty."""
        ...

    def close(self) -> None:
        """Gives back what is held open; the instance is not used again."""
        ...


@runtime_checkable
class WithExpert(Protocol):
    """What an environment offers besides, if it knows what should be done."""

    def expert(self) -> ExpertAction:
        """The expert's action in the present state."""
        ...


def expert_of(environment: Environment) -> WithExpert:
    """The environment as one that has an expert.

    Raises:
        ConfigError: it has none.
    """
    if not isinstance(environment, WithExpert):
        raise ConfigError(
            f"{type(environment).__name__} has no expert — learn from stored episodes "
            "(--data FOLDER), or from reward alone (train ppo)"
        )
    return environment


class WithCeiling(Protocol):
    """What an environment offers besides, if the best success rate is known."""

    @property
    def ceiling(self) -> Ceiling:
        """The best success rate that any policy can reach; may take seconds to compute."""
        ...


def ceiling_of(environment: Environment) -> Ceiling | None:
    """The ceiling, where the environment offers one. It may take long to compute."""
    return getattr(environment, "ceiling", None)


ResolveAction = Callable[[str, Sequence[str]], str | None]
"""`WithActionResolution.resolve_action`."""


@runtime_checkable
class WithActionResolution(Protocol):
    """What an environment offers besides, if it takes other texts for an action that it lists:
    such a response is that action, not an invalid one."""

    def resolve_action(self, text: str, admissible: Sequence[str]) -> str | None:
        """The admissible action that a text means; None: none of them. A function of its
        arguments and of the environment's options, not of its state."""
        ...


@runtime_checkable
class WithVocabulary(Protocol):
    """What an environment offers besides, if its actions are made of a fixed set of words, all of
    which a tokenizer should know, also those that no expert uses."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Texts, each of which the tiny model's tokenizer makes one token: letters, or a letter b
        and three digits."""
        ...


@runtime_checkable
class WithRender(Protocol):
    """What an environment offers besides, if people are shown more than the agent is."""

    def render(self) -> Image | str:
        """An image, or a drawing in characters, of the present state."""
        ...


@runtime_checkable
class WithHeldOutEpisodes(Protocol):
    """What an environment offers besides, if it has only so many different held-out episodes:
    further seeds play the same ones again."""

    @property
    def held_out_episodes(self) -> int:
        """How many there are."""
        ...


@runtime_checkable
class WithThoughtFacts(Protocol):
    """What an environment offers besides, if it knows whether a thought is true."""

    def thought_facts(self, response: str) -> ThoughtFacts:
        """What a response claims about the present state, and the truth. Total: any text gives
        one, and nothing changes.

        Args:
            response: all that the agent wrote, its action included.
        """
        ...


DataPolicy = Callable[[], ExpertAction]
"""Acts in the environment's present state; one for each episode."""


@runtime_checkable
class WithDataPolicy(Protocol):
    """What an environment offers besides, if its offline data have an author of their own: a policy
    between random and expert, as good as the published data (`collect --policy data`)."""

    @property
    def data_skill(self) -> float:
        """The setting with which the data policy is as good as the published data."""
        ...

    def data_policy(self, skill: float, randomness: np.random.Generator) -> DataPolicy:
        """The data policy for one episode, which may not have begun yet.

        Args:
            skill: how good it is, on a scale of the environment's own; its docstring says which.
            randomness: of all that it draws, in this episode and nowhere else.

        Raises:
            ConfigError: a skill outside the environment's scale.
        """
        ...


Wording = Literal["short", "paper"]
"""The published prompt, or one of a quarter of its length."""


class Prompter(Protocol):
    """Turns an observation into the messages that are put to the model."""

    def messages(self, observation: Observation) -> tuple[Message, ...]:
        """The prompt for an observation, in order, the last one of the user."""
        ...


@runtime_checkable
class WithResponseFields(Protocol):
    """What a prompter offers besides, if it asks for a response in JSON."""

    @property
    def response_fields(self) -> tuple[str, ...]:
        """Names of the fields that it asks for, in order, `action` last; empty where what it
        wraps asks for no JSON."""
        ...


class Past(NamedTuple):
    """An earlier step of the episode."""

    observation: Observation
    """What it saw, without the image."""
    action: str
    """What was done; after a response without a valid action, what it tried (possibly nothing)."""
    is_valid: bool
    """Whether that was an action; if not, nothing happened."""


Summarize = Callable[[Sequence[Past], Observation], Observation]
"""The present observation with a text that holds all that is worth remembering of the steps so
far, oldest first: a pure function of what the agent was shown and did, so that it survives a kill
and says nothing that is hidden."""


@runtime_checkable
class WithWording(Protocol):
    """What an environment offers besides, if it words its own prompts."""

    def prompter(self, response_format: ResponseFormat, wording: Wording) -> Prompter:
        """
        Args:
            response_format: with thoughts before the action, or the action alone.
            wording: "paper" is the published prompt, where there is one.
        """
        ...


@runtime_checkable
class WithSummary(Protocol):
    """What an environment offers besides, if it can sum up an episode (`prompt.history`)."""

    @property
    def summarize(self) -> Summarize | None:
        """None: what the options show leaves nothing to sum up."""
        ...


@runtime_checkable
class WithTranscript(Protocol):
    """What an environment offers besides, if its observation's text is the episode so far, as
    `write_transcript` has it: prompts give it as the conversation that it was."""

    is_transcript: bool

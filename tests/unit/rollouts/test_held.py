"""What answers are held to: what the prompt lists, or what is legal where it lists nothing."""

import pytest

from forethought.configs.parts import SamplingConfig
from forethought.environments.vector import InProcessRunner
from forethought.generation.contract import GenerationRequest
from forethought.prompts.prompters import PlainPrompter
from forethought.rollouts.collector import Collector
from forethought.rollouts.seeding import Split
from tests.unit.environments.troublesome_environment import FaultyEnvironment
from tests.unit.rollouts.dice import Dice


class ListedEnvironment(FaultyEnvironment):
    """Where the count is odd, nothing but "add" is legal."""

    def legal_actions(self) -> tuple[str, ...]:
        return ("add",) if self._count % 2 else ("add", "end")


class UnlistedEnvironment(ListedEnvironment):
    """The same, for a reader of open text."""

    actions = None  # pyright: ignore[reportAssignmentType]


class Listening(Dice):
    """Keeps what it was held to, by prompt."""

    def __init__(self) -> None:
        super().__init__({"add": 1.0})
        self.held: list[tuple[int, tuple[str, ...] | None]] = []

    def submit(self, request: GenerationRequest) -> None:
        count = int(request.prompt.messages[-1].text.split("\n")[1].split()[0])
        self.held.append((count, request.choices))
        super().submit(request)


def held_in(environment: type[FaultyEnvironment], *, holds: bool = True) -> dict[int, set[object]]:
    """For an even count and for an odd one, in two collections and in a restored slot."""
    policy = Listening()
    one, other = (
        Collector(
            environment_id="Count",
            runner=InProcessRunner(environment, 1),
            policy=policy,
            prompter=PlainPrompter(environment.actions, "action_only"),
            sampling=SamplingConfig(max_new_tokens=8, temperature=1.0, constrain_actions=holds),
            split=Split.TRAINING,
            run_seed=0,
        )
        for _ in range(2)
    )
    one.collect_steps(3)
    one.collect_steps(2)
    other.restore(one.cursors())
    other.collect_steps(2)
    assert len(policy.held) == 7
    return {rest: {held for count, held in policy.held if count % 2 == rest} for rest in (0, 1)}


@pytest.mark.parametrize(
    ("environment", "even", "odd"),
    [
        (UnlistedEnvironment, ("add", "end"), ("add",)),
        (ListedEnvironment, ListedEnvironment.actions, ListedEnvironment.actions),
    ],
)
def test_what_an_answer_can_name(
    environment: type[FaultyEnvironment], even: tuple[str, ...], odd: tuple[str, ...]
) -> None:
    assert held_in(environment) == {0: {even}, 1: {odd}}


def test_an_answer_may_be_free() -> None:
    assert held_in(UnlistedEnvironment, holds=False) == {0: {None}, 1: {None}}

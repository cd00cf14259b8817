"""Episodes of a world's expert as conversations to follow, for prompts that show some."""

from dataclasses import replace

from forethought.environments.contract import expert_of
from forethought.prompts.history import with_history
from forethought.prompts.react import ReActPrompter, follow_on, write_thought_and_action
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.task import Task
from forethought.types import Message


def reasoning_and_acting(world: Task, *, examples: int) -> Task:
    """The same world, told as `ReActPrompter` does it; the past, as far as it was to be told.

    Args:
        world: its prompter asks for the action alone.
        examples: episodes of the expert that are shown: the first demonstrations.
    """
    told = with_history(world.prompter)
    shown: list[Message] = []
    environment = world.factory()
    try:
        for index in range(examples):
            observation = environment.reset(episode_seed(Split.DEMONSTRATION, 0, index))
            before: tuple[Message, ...] = ()
            ended = False
            while not ended:
                now = told.inner.messages(observation)
                expert_action = expert_of(environment).expert()
                answer = Message("assistant", write_thought_and_action(expert_action))
                shown += [*follow_on(before, now), answer]
                transition = environment.step(expert_action.action)
                ended = transition.terminated or transition.truncated
                before, observation = now, environment.observation()
    finally:
        environment.close()
    wording = ReActPrompter(told.inner, tuple(shown))
    return replace(world, prompter=replace(told, inner=wording))

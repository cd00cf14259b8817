"""Which wording belongs to which environment: its own, the transcript's, or the plain one."""

from forethought.configs.parts import AnswerFormat, require
from forethought.environments.contract import Environment
from forethought.environments.wording import (
    Prompter,
    Summarize,
    WithSummary,
    WithTranscript,
    WithWording,
    Wording,
)
from forethought.prompts.plain import PlainPrompter
from forethought.prompts.transcript import TranscriptPrompter


def make_prompter(
    environment: Environment,
    *,
    answer_format: AnswerFormat = "thoughts",
    wording: Wording = "short",
) -> Prompter:
    """The environment's own wording, or the plain one.

    Args:
        answer_format: with thoughts before the action, or the action alone.
        wording: "paper" is the published prompt, where the environment has one.
    """
    if isinstance(environment, WithWording):
        return environment.prompter(answer_format, wording)
    if isinstance(environment, WithTranscript):
        return TranscriptPrompter(answer_format)
    return PlainPrompter(environment.actions, answer_format)


def find_summary(name: str, environment: Environment) -> Summarize:
    """The summary that an environment makes of an episode.

    Raises:
        ConfigError: it makes none, or none with its options.
    """
    has_one = isinstance(environment, WithSummary)
    expected = f"none or window for {name}, which sums up no episode"
    require(has_one, "prompt.history", "summary", expected)
    summarize = environment.summarize if isinstance(environment, WithSummary) else None
    # Where nothing is said, the summary of it would say that nothing is held.
    expected = "none or window where only images are shown, which leave no text to sum up"
    require(summarize is not None, "prompt.history", "summary", expected)
    assert summarize is not None
    return summarize

"""Stored steps as text that a model learns to write."""

from forethought.errors import PolicyError
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.batching import Example
from forethought.types import Prompt, Step


def to_example(step: Step, policy: HuggingFacePolicy) -> Example:
    """A step as training data.

    Ids that a model sampled are kept as they are; the text is tokenized only where there
    are none (an expert wrote it), or where they are those of another tokenizer.
    """
    prompt = stored_prompt(step, policy)
    sampled = step.completion.token_ids
    try:
        if not sampled or prompt.token_ids != step.prompt.token_ids:
            sampled = policy.encoder.tokenize_answer(step.completion.text)
        policy.encoder.limits.require_prompt(
            len(prompt.token_ids) + len(sampled) - 1,
            "the prompt with all but the end of its answer",
        )
    except PolicyError as error:
        raise _placed(error, step) from error
    return Example(prompt, sampled)


def stored_prompt(step: Step, policy: HuggingFacePolicy) -> Prompt:
    """The prompt of stored messages, for this model.

    Raises:
        PolicyError: the model cannot read it, or it is too long.
    """
    try:
        return policy.prompt(step.prompt.messages)
    except PolicyError as error:
        raise _placed(error, step) from error


def _placed(error: PolicyError, step: Step) -> PolicyError:
    return type(error)(f"data, a step in state {step.state_key[:40]!r}: {error}")

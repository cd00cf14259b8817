"""Stored steps as text that a model learns to write."""

from forethought.policies.batching import Example
from forethought.policies.huggingface import HuggingFacePolicy
from forethought.types import Step


def to_example(step: Step, policy: HuggingFacePolicy) -> Example:
    """A step as training data.

    Ids that a model sampled are kept as they are; the text is tokenised only where there
    are none (an expert wrote it), or where they are those of another tokenizer.
    """
    prompt = policy.prompt(step.prompt.messages)
    sampled = step.completion.token_ids
    if sampled and prompt.token_ids == step.prompt.token_ids:
        return Example(prompt, sampled)
    return Example(prompt, policy.encoder.tokenise_answer(step.completion.text))

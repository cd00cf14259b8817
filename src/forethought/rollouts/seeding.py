"""Which number starts which episode, and which number draws which token.

All randomness of a rollout is a function of these numbers, so there is no generator
state to lose, and training, demonstrations and evaluation cannot share an episode seed.
"""

from enum import IntEnum

import numpy as np

_SPLIT_SHIFT = 60


class Split(IntEnum):
    """What an episode is played for; each has a range of seeds of its own."""

    TRAINING = 0
    DEMONSTRATION = 1
    EVALUATION = 2


def episode_seed(split: Split, run_seed: int, index: int) -> int:
    """The seed of one episode, below 2**62.

    Evaluation ignores the run seed: every method is judged on the same episodes.
    """
    if split is Split.EVALUATION:
        return (split << _SPLIT_SHIFT) + index
    words = np.random.SeedSequence([run_seed, index]).generate_state(1, np.uint64)
    return (split << _SPLIT_SHIFT) + int(words[0]) % (1 << _SPLIT_SHIFT)


def is_held_out(seed: int) -> bool:
    """Whether an episode is one of those that policies are judged on."""
    return seed >> _SPLIT_SHIFT == Split.EVALUATION


def completion_seed(run_seed: int, episode: int, step: int) -> int:
    """The key (Philox, below 2**128) of all random numbers of one answer."""
    return (run_seed << 96) | (episode << 32) | step


def draw_action(seed: int, choices: int) -> int:
    """The uniform draw that replaces an invalid answer (RL4VLM, Eq. 4.1).

    From the same key as the answer's tokens, but from a distant part of its stream.
    """
    randomness = np.random.Generator(np.random.Philox(key=seed, counter=1 << 192))
    return int(randomness.integers(choices))

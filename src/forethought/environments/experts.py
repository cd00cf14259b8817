"""Which expert a game offers: the one that wins, or one that sees as well and chooses at random.

SFT on the second teaches to look and to speak, not what to do: that is left to reinforcement
learning, which finds a policy whose thoughts are true and that still tries everything.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

import numpy as np

ExpertName = Literal["optimal", "random_choice"]
EXPERTS = ("optimal", "random_choice")


def random_choice(actions: Sequence[str], np_random: np.random.Generator, step: int) -> str:
    """One of the actions, each equally likely; the same at every call in the same moment.

    Nothing is drawn from the environment's generator, so what it deals next stays as it is: the
    choice is a digest of the generator's state and of the step.

    Args:
        np_random: the environment's own.
        step: steps of the episode so far.
    """
    digest = sha256(f"{np_random.bit_generator.state} {step}".encode()).digest()
    return actions[int.from_bytes(digest[:8]) % len(actions)]

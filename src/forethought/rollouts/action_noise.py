"""An expert that slips now and then, so that one learns how it goes on from there.

Who imitates flawless episodes never sees what follows a mistake, and is lost after its first
(DART: Laskey et al., 2017, with noise that does not depend on the state).
"""

import numpy as np

from forethought.configs.parts import ResponseFormat
from forethought.environments.contract import Environment, ExpertAction
from forethought.prompts.responses import write_response
from forethought.rollouts.scripted import actions_to_try, expert_answer
from forethought.types import Observation


class SlippingExpert:
    """Answers as the world's expert, but for a share of the steps.

    There it tries, uniformly, any action that the episode has offered so far, so that some are
    not possible any more.
    """

    def __init__(self, share: float, response_format: ResponseFormat, *, seed: int) -> None:
        self._share = share
        self._expert = expert_answer(response_format)
        self._randomness = np.random.Generator(np.random.Philox(key=seed))
        self._offered: dict[str, None] = {}
        self._slips: list[bool] = []

    def __call__(self, environment: Environment, observation: Observation) -> str:
        """The text of the next answer."""
        self._offered.update(dict.fromkeys(actions_to_try(environment, observation)))
        is_slip = bool(self._randomness.random() < self._share)
        text = self._slip() if is_slip else self._expert(environment, observation)
        self._slips.append(is_slip)  # of an answer; where the expert fails, there is none
        return text

    def end_episode(self) -> list[bool]:
        """Which of the episode's answers were slips; the next answer begins another one."""
        slips, self._slips, self._offered = self._slips, [], {}
        return slips

    def _slip(self) -> str:
        offered = tuple(self._offered)
        action = offered[int(self._randomness.integers(len(offered)))]
        return write_response(ExpertAction(action, ()), "action_only")

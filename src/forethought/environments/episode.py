"""The clock and the purse of one episode."""

from forethought.environments.contract import Transition


class Episode:
    """Counts the steps and the reward of an episode, and knows when it is over."""

    def __init__(self, limit_steps: int) -> None:
        self.limit_steps = limit_steps
        self.steps = 0
        self.total_reward = 0.0
        """Undiscounted sum of the rewards so far."""
        self.is_over = True
        """True before the first episode: nothing may be done before a restart."""

    def begin(self) -> None:
        self.steps = 0
        self.total_reward = 0.0
        self.is_over = False

    def require_open(self) -> None:
        """Raises:
        RuntimeError: the episode has ended, or none was started.
        """
        if self.is_over:
            raise RuntimeError("the episode is over — restart it with a seed before acting")

    @property
    def is_last_step(self) -> bool:
        """Whether the step now being taken is the last that the limit allows."""
        return self.steps + 1 >= self.limit_steps

    def record(self, reward: float, *, terminated: bool) -> Transition:
        """Books one step; an episode that did not terminate is truncated at the limit."""
        truncated = not terminated and self.is_last_step
        self.steps += 1
        self.total_reward += reward
        self.is_over = terminated or truncated
        return Transition(reward, terminated, truncated)

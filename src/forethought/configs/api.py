"""How a model behind a chat-completions endpoint is asked.

Where it is and what opens it are no settings: `OPENAI_BASE_URL` and `OPENAI_API_KEY` are read
from the environment, so that no key comes into a config file, a log or a report.
"""

from dataclasses import dataclass
from typing import Literal

from forethought.configs.parts import require


@dataclass(frozen=True)
class ApiConfig:
    """Only for models named `api:NAME`."""

    style: Literal["plain", "react"] = "plain"
    """plain: the world's prompt as it is. react: reason and act (Yao et al. 2023): a system
    message asks for a thought in free words before each action, and episodes of the world's
    expert are shown first."""

    examples: int = 1
    """Episodes of the expert that `react` shows; demonstrations, never held-out ones. The
    paper's prompts hold 1 to 6."""

    concurrency: int = 8
    """Requests that are under way at the same time."""

    requests_per_minute: float | None = None
    """No more than so many, retries included, evenly spread; by default as fast as answers
    come."""

    timeout_s: float = 60.0
    """A request that takes longer counts as failed, and is tried again."""

    attempts: int = 6
    """How often a request is sent before it is given up: after 429, 5xx, a broken connection,
    half an answer, or one that cannot be read. Waits double from 1 s up to 60 s, and are at
    least what Retry-After says."""

    prompt_price: float = 0.0
    """US dollars per million prompt tokens, for the sum that is told at the end."""

    completion_price: float = 0.0
    """US dollars per million tokens of answers."""

    def __post_init__(self) -> None:
        require(0 <= self.examples <= 100, "api.examples", self.examples, "0 to 100")
        require(1 <= self.concurrency <= 256, "api.concurrency", self.concurrency, "1 to 256")
        rate = self.requests_per_minute
        require(rate is None or rate > 0, "api.requests_per_minute", rate, "above 0")
        require(self.timeout_s > 0, "api.timeout_s", self.timeout_s, "above 0")
        require(1 <= self.attempts <= 100, "api.attempts", self.attempts, "1 to 100")
        for name in ("prompt_price", "completion_price"):
            require(getattr(self, name) >= 0, f"api.{name}", getattr(self, name), "0 or more")

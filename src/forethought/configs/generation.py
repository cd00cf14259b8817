"""Where responses are generated: in this process, or by engines elsewhere."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from forethought.configs.parts import require


@dataclass(frozen=True)
class GenerationConfig:
    """Which engines write the responses; none: this process does."""

    engine: tuple[str, ...] = ()
    """Addresses of engines that write all responses, `http://HOST:PORT`: `forethought serve`, or
    vLLM. Several are replicas: the requests of a lost one go to another one."""

    shared_folder: str | None = None
    """Where weights are published for the engines, a folder that they see under the same path; by
    default `published` in the run folder."""

    max_staleness: int = 0
    """How many updates the weights that wrote a response may be behind; what is staler is written
    again. 0: on-policy."""

    importance_cap: float | None = None
    """C of truncated importance sampling: each response, or token with `ratio: token`, counts
    min(π / π_engine, C) times, for what engine and trainer make of equal weights differs; null:
    once. 2 is usual."""

    workers: bool = False
    """Whether `forethought work --run RUN` plays the episodes, in any number of processes that see
    the run folder; the trainer waits for them."""

    worker_silence_s: float = 60.0
    """A worker that was not heard of for so long has died: others play its episodes."""

    concurrency: int = 64
    """Requests under way at the same time."""

    timeout_s: float = 600.0
    """For one request; then it is asked of another engine."""

    patience_s: float = 600.0
    """Seconds that the run waits without a response of an engine or a worker; then it stops."""

    def __post_init__(self) -> None:
        for url in self.engine:
            require(_is_address(url), "generation.engine", url, "http://HOST:PORT")
        stale = self.max_staleness
        require(0 <= stale <= 100, "generation.max_staleness", stale, "0 to 100")
        cap = self.importance_cap
        require(cap is None or cap > 0, "generation.importance_cap", cap, "above 0, or null")
        is_served = bool(self.engine) or not self.workers
        require(is_served, "generation.workers", True, "false without generation.engine")
        count = self.concurrency
        require(1 <= count <= 1024, "generation.concurrency", count, "1 to 1024")
        for name in ("timeout_s", "patience_s", "worker_silence_s"):
            require(getattr(self, name) > 0, f"generation.{name}", getattr(self, name), "above 0")

    def folder(self, published: Path) -> Path:
        """Where weights are published: by default in the run's own folder for them."""
        return published if self.shared_folder is None else Path(self.shared_folder)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_reachable = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_plain = not set(url) & set("@?# ") and parts.path in ("", "/")
        return is_reachable and is_plain and parts.port != 0
    except ValueError:  # A port that is no number.
        return False

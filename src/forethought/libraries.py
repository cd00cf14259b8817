"""The heavy libraries, loaded late and kept quiet; and how many CPU threads PyTorch gets."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from forethought.configs.parts import require

VARIABLE = "OMP_NUM_THREADS"


class ThreadChoice(NamedTuple):
    threads: int
    reason: str
    """Why, as `forethought doctor` says it."""


def choose_threads(
    asked: int | None,
    *,
    cores: int | None = None,
    processes: int = 1,
    environ: Mapping[str, str] | None = None,
) -> ThreadChoice:
    """What was asked for; else OMP_NUM_THREADS; else one thread fewer than cores.

    OpenMP's threads wait for each other by spinning. Where another process takes one of as many
    cores as there are threads, all of them wait for the one that has no core, and a step takes
    three times as long (docs/performance.md); a core that is left free costs much less.

    Args:
        asked: by a flag or a setting.
        cores: that this process may use; by default it is asked for.
        processes: that share them.
        environ: by default this process's.
    """
    if asked is not None:
        return ThreadChoice(asked, "as asked")
    said = (os.environ if environ is None else environ).get(VARIABLE, "").partition(",")[0].strip()
    if said.isdecimal() and int(said) >= 1:
        return ThreadChoice(int(said), f"{VARIABLE} says so")
    cores = usable_cores() if cores is None else cores
    count = max(1, (cores - 1) // processes)
    if cores == 1:
        return ThreadChoice(count, "there is one core")
    return ThreadChoice(count, f"a core is left to other processes ({VARIABLE} or --threads: more)")


def usable_cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_quietly(*, threads: int | None = None) -> None:
    """Loads torch and transformers, and stills what they say beside their errors.

    To be called before anything of `policies/` or `training/` is imported.

    Args:
        threads: CPU threads of torch; by default as `choose_threads` says.

    Raises:
        ConfigError: fewer threads than one.
    """
    require(threads is None or threads >= 1, "threads", threads, "1 or more")
    import torch
    from huggingface_hub.utils import logging as hub_logging
    from transformers.utils import logging

    hub_logging.set_verbosity_error()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(choose_threads(threads).threads)


def is_first_process() -> bool:
    """Whether this process speaks: of those of `accelerate launch`, one does."""
    return os.environ.get("RANK", "0") == "0"

"""The heavy libraries, loaded late and kept quiet."""

import os

from forethought.configs.parts import require
from forethought.threads import choose_threads


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

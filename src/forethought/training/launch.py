"""Several processes of one training run on this machine, without a launcher's ceremony."""

import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from forethought.errors import ConfigError

_ENDED_BY_LAUNCHER = (-signal.SIGTERM, 128 + signal.SIGTERM)
"""Exit codes of a process that the launcher ended, since another one had failed."""


def refuse_second_launch(processes: int, environ: Mapping[str, str]) -> None:
    """Refuses to start processes from one that a launcher started, and more than there are GPUs.

    Raises:
        ConfigError: it is one of several, or a GPU would have two of them.
    """
    if int(environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            f"--processes is {processes}, but a launcher has started {environ['WORLD_SIZE']} "
            "processes already — leave --processes out"
        )
    gpus = torch.cuda.device_count()
    if 0 < gpus < processes:
        raise ConfigError(f"--processes is {processes} — expected 1 to {gpus}, one for each GPU")


def launch(processes: int, words: Sequence[str]) -> int:
    """Runs `forethought WORDS` in so many processes, by PyTorch's launcher.

    The first one speaks; what the others say is shown where one of them fails first. A signal
    that this process gets is sent on to them.

    Returns:
        The exit code: that of the first process that failed, or 128 and a signal's number.
    """
    if not torch.cuda.is_available():
        os.environ["ACCELERATE_USE_CPU"] = "true"
    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)
    with TemporaryDirectory(prefix="forethought-") as folder:
        quiet = dict.fromkeys(range(1, processes), Std.ALL)
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=processes,
            run_id=Path(folder).name,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            monitor_interval=0.1,
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(log_dir=folder, redirects=quiet),
        )
        try:
            elastic_launch(config, sys.executable)("-u", "-m", "forethought", *words)
        except SignalException as received:
            return 128 + received.sigval
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            own = error.failures.get(0)
            if own is not None and own.exitcode not in _ENDED_BY_LAUNCHER:
                failure = own  # It has spoken for itself.
            else:
                _show_last_line(folder, rank)
            code = failure.exitcode
            return code if code >= 0 else 128 - code
    return 0


def _show_last_line(folder: str, rank: int) -> None:
    for log in sorted(Path(folder).glob(f"**/{rank}/stderr.log")):
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        print(f"process {rank}: {lines[-1] if lines else 'ended'}", file=sys.stderr)

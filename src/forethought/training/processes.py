"""The processes that train together: started here by PyTorch's launcher, or joined as another one
started them; and the precision in which they compute."""

import logging
import os
import signal
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch.backends import cuda
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from torch.nn.attention import SDPBackend, sdpa_kernel

from forethought.configs.parts import ComputeConfig
from forethought.errors import ConfigError
from forethought.libraries import choose_threads
from forethought.training.sharding import is_sharded, settle_plugin, shard_on_cpu

_SUPPORTED = (
    DistributedType.NO,
    DistributedType.MULTI_CPU,
    DistributedType.MULTI_GPU,
    DistributedType.FSDP,
)
_UNSUPPORTED = ("DEEPSPEED", "MEGATRON_LM")


def start_processes(config: ComputeConfig) -> Accelerator:
    """Joins the processes of `accelerate launch`, or stands alone; sets the CPU threads.

    Raises:
        ConfigError: a launch strategy that this version cannot checkpoint, or processes
            that were launched together and do not find each other.
    """
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    torch.set_num_threads(choose_threads(config.threads, processes=local).threads)
    precision = "no" if config.precision == "fp32" else config.precision
    accelerator = Accelerator(mixed_precision=precision)
    if _asks_for("FSDP", os.environ) and accelerator.distributed_type == DistributedType.MULTI_CPU:
        shard_on_cpu(accelerator)
    if is_sharded(accelerator):
        settle_plugin(accelerator)
    refuse_launch(accelerator.distributed_type, accelerator.num_processes, os.environ)
    return accelerator


def refuse_launch(strategy: DistributedType, processes: int, environ: Mapping[str, str]) -> None:
    """Accepts one process, data parallelism, or FSDP.

    Accelerate itself ignores, on CPUs, that DeepSpeed was asked for, and that PyTorch's launcher
    started several processes: each would train, alone, the same run.
    """
    asked = [name for name in _UNSUPPORTED if _asks_for(name, environ)]
    if asked or strategy not in _SUPPORTED:
        raise ConfigError(
            f"accelerate launched {asked[0] if asked else strategy.value} — this version supports "
            "one process, data parallelism (MULTI_GPU, MULTI_CPU), and FSDP with fsdp_version 2"
        )
    launched = int(environ.get("WORLD_SIZE", "1"))
    if launched != processes:
        raise ConfigError(
            f"{launched} processes were launched, but this one is among {processes} — on CPUs, "
            "set ACCELERATE_USE_CPU=true before torchrun"
        )
    if _asks_for("FSDP", environ) and strategy != DistributedType.FSDP:
        raise ConfigError(
            f"accelerate launched FSDP with {processes} process — expected two or more, among "
            "which the weights are divided"
        )


def _asks_for(strategy: str, environ: Mapping[str, str]) -> bool:
    """Whether Accelerate's launch, or a person in its place, asks for a strategy."""
    return environ.get(f"ACCELERATE_USE_{strategy}", "").lower() == "true"


@contextmanager
def autocast(accelerator: Accelerator, *, recomputes: bool) -> Generator[None]:
    """What `compute.precision` asks for.

    PyTorch's fused attention on the CPU is slower in bf16 than in fp32, while matrix products are
    several times as fast. There, attention is done as two products and a softmax.

    Args:
        recomputes: whether the backward pass runs parts of the forward pass again, outside of
            this context: attention is then left as it is, for both must do the same.
    """
    is_on_cpu = accelerator.mixed_precision == "bf16" and accelerator.device.type == "cpu"
    attention = attention_by_products() if is_on_cpu and not recomputes else nullcontext()
    with accelerator.autocast(), attention:
        yield


@contextmanager
def attention_by_products() -> Generator[None]:
    """Attention as two products and a softmax, in the precision of its inputs."""
    allowed = cuda.fp16_bf16_reduction_math_sdp_allowed()
    cuda.allow_fp16_bf16_reduction_math_sdp(True)  # on every device; else it would compute in fp32
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        cuda.allow_fp16_bf16_reduction_math_sdp(allowed)


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

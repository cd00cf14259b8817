"""The processes that train together, and the precision in which they compute."""

import os
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch.backends import cuda
from torch.nn.attention import SDPBackend, sdpa_kernel

from forethought.configs.parts import ComputeConfig
from forethought.errors import ConfigError
from forethought.libraries import choose_threads
from forethought.training.sharding import is_sharded, settle_plugin, shard_on_cpu
from forethought.training.zero import (
    is_partitioned,
    partition_on_cpu,
    require_deepspeed,
    settle_config,
)

_SUPPORTED = (
    DistributedType.NO,
    DistributedType.MULTI_CPU,
    DistributedType.MULTI_GPU,
    DistributedType.FSDP,
    DistributedType.DEEPSPEED,
)
_DIVIDED = {
    "FSDP": (DistributedType.FSDP, "the weights are"),
    "DEEPSPEED": (DistributedType.DEEPSPEED, "the optimizer's moments are"),
}
"""By what a launch asks for: what it then is, and what is divided among processes."""


def start_processes(config: ComputeConfig) -> Accelerator:
    """Joins the processes of `accelerate launch`, or stands alone; sets the CPU threads.

    Raises:
        ConfigError: a launch strategy that this version cannot checkpoint, or processes
            that were launched together and do not find each other.
    """
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    torch.set_num_threads(choose_threads(config.threads, processes=local).threads)
    if not torch.cuda.is_available():
        # Where DeepSpeed is installed, Accelerate loads it; it would say on stdout what it found.
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    if _asks_for("DEEPSPEED", os.environ):
        require_deepspeed()
    precision = "no" if config.precision == "fp32" else config.precision
    accelerator = Accelerator(mixed_precision=precision)
    if accelerator.distributed_type == DistributedType.MULTI_CPU:
        if _asks_for("FSDP", os.environ):
            shard_on_cpu(accelerator)
        elif _asks_for("DEEPSPEED", os.environ):
            partition_on_cpu(accelerator)
    if is_sharded(accelerator):
        settle_plugin(accelerator)
    elif is_partitioned(accelerator):
        settle_config(accelerator)
    refuse_launch(accelerator.distributed_type, accelerator.num_processes, os.environ)
    return accelerator


def refuse_launch(strategy: DistributedType, processes: int, environ: Mapping[str, str]) -> None:
    """Accepts one process, data parallelism, FSDP, or DeepSpeed.

    Accelerate itself ignores, on CPUs, that PyTorch's launcher started several processes: each
    would train, alone, the same run.
    """
    name = "MEGATRON_LM" if _asks_for("MEGATRON_LM", environ) else strategy.value
    if name not in _SUPPORTED:
        raise ConfigError(
            f"accelerate launched {name} — this version supports one process, data parallelism "
            "(MULTI_GPU, MULTI_CPU), FSDP with fsdp_version 2, and DeepSpeed with zero_stage 2"
        )
    launched = int(environ.get("WORLD_SIZE", "1"))
    if launched != processes:
        raise ConfigError(
            f"{launched} processes were launched, but this one is among {processes} — on CPUs, "
            "set ACCELERATE_USE_CPU=true before torchrun"
        )
    for asked, (expected, divided) in _DIVIDED.items():
        if _asks_for(asked, environ) and (strategy != expected or processes == 1):
            raise ConfigError(
                f"accelerate launched {asked} with {processes} process — expected two or more, "
                f"among which {divided} divided"
            )


def _asks_for(strategy: str, environ: Mapping[str, str]) -> bool:
    """Whether Accelerate's launch, or a person in its place, asks for a strategy."""
    return environ.get(f"ACCELERATE_USE_{strategy}", "").lower() == "true"


@contextmanager
def autocast(precision: str, device: str, *, recomputes: bool) -> Generator[None]:
    """What `compute.precision` asks for.

    Accelerate's own does nothing where it was launched with DeepSpeed.

    Args:
        device, recomputes: as `attention_for`.
    """
    cast = torch.autocast(device, torch.bfloat16, enabled=precision == "bf16")
    with cast, attention_for(precision, device, recomputes=recomputes):
        yield


def attention_for(precision: str, device: str, *, recomputes: bool) -> AbstractContextManager[None]:
    """The attention of forward passes.

    PyTorch's fused attention on the CPU is slower in bf16 than in fp32, while matrix products are
    several times as fast. There, attention is done as two products and a softmax.

    Args:
        device: its type, "cpu" or "cuda".
        recomputes: whether the backward pass runs parts of the forward pass again, outside of
            this context: attention is then left as it is, for both must do the same.
    """
    is_by_products = precision == "bf16" and device == "cpu" and not recomputes
    return _by_products() if is_by_products else nullcontext()


@contextmanager
def _by_products() -> Generator[None]:
    """Attention as two products and a softmax, in the precision of its inputs."""
    allowed = cuda.fp16_bf16_reduction_math_sdp_allowed()
    cuda.allow_fp16_bf16_reduction_math_sdp(True)  # on every device; else it would compute in fp32
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        cuda.allow_fp16_bf16_reduction_math_sdp(allowed)

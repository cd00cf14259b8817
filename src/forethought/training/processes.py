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

    Args:
        recomputes: as `attention_for`.
    """
    precision, device = accelerator.mixed_precision, accelerator.device.type
    with accelerator.autocast(), attention_for(precision, device, recomputes=recomputes):
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

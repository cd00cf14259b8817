"""The forward pass in half precision, as fast as the processor allows."""

from collections.abc import Generator
from contextlib import contextmanager, nullcontext

from accelerate import Accelerator
from torch.backends import cuda
from torch.nn.attention import SDPBackend, sdpa_kernel


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
    attention = _by_products() if is_on_cpu and not recomputes else nullcontext()
    with accelerator.autocast(), attention:
        yield


@contextmanager
def _by_products() -> Generator[None]:
    allowed = cuda.fp16_bf16_reduction_math_sdp_allowed()
    cuda.allow_fp16_bf16_reduction_math_sdp(True)  # on every device; else it would compute in fp32
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        cuda.allow_fp16_bf16_reduction_math_sdp(allowed)

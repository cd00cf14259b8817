"""The memory and the arithmetic of an update, known without doing it.

The model's own forward and backward pass run on tensors that have a shape and no content
(PyTorch's fake tensors): every operation is asked what it would allocate, so that any architecture
counts, its image tower, adapters, recomputed layers and half precision included. Token ids keep
their content: where an image stands decides shapes.
"""

import weakref
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from forethought.models.actor_critic import ActorCritic, Scores, ValueHead
from forethought.models.batching import TokenBatch
from forethought.models.loading import LoadedModel
from forethought.training.processes import attention_for


class UpdateCost(NamedTuple):
    """What one optimizer step takes, on one process."""

    weights: int
    """Bytes, of frozen ones too."""
    moments: int
    """Bytes of Adam's."""
    peak: int
    """Most bytes of activations and gradients at a time."""
    flops: int
    """Floating-point operations of one micro-batch, forwards and backwards."""

    @property
    def total(self) -> int:
        """Bytes at the peak."""
        return self.weights + self.moments + self.peak


def update_cost(
    loaded: LoadedModel,
    batch: TokenBatch,
    *,
    critic: bool,
    precision: str = "fp32",
    recomputes: bool = False,
    micro_batches: int = 2,
) -> UpdateCost:
    """The cost of an update of the model's trained weights.

    Args:
        loaded: an outline (`load_outline`), whose weights become ones without content.
        batch: a micro-batch like those to come, on the CPU.
        critic: whether a value head is trained beside the model.
        precision: of the forward pass, "fp32" or "bf16".
        recomputes: whether layers recompute their activations in the backward pass.
        micro_batches: of an optimizer step; from the second on all gradients are there.
    """
    model: Any = loaded.model
    head = None
    if critic:
        width = model.config.get_text_config().hidden_size
        head = ValueHead(width, generator=torch.Generator().manual_seed(0))
    module = ActorCritic(model, head)
    _empty(module)
    if recomputes:
        model.activation_checkpointing_enable({"use_reentrant": False})
    parameters = list(module.parameters())
    trained = sum(p.nbytes for p in parameters if p.requires_grad)
    module.train()
    module.without_dropout()
    tracked = Allocations()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with attention_for(precision, device, recomputes=recomputes), tracked:
        for _ in range(min(micro_batches, 2)):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
                scores: Scores = module(batch)
            loss = scores.logprobs_BT.sum() + scores.entropies_BT.sum()
            if scores.values_B is not None:
                loss = loss + scores.values_B.sum()
            del scores
            loss.backward()
            del loss
    flops = tracked.flops // min(micro_batches, 2)
    return UpdateCost(sum(p.nbytes for p in parameters), 2 * trained, tracked.peak, flops)


def measure_flops(precision: str) -> float:
    """Floating-point operations per second that matrix products reach on this machine now."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size = 4096 if device == "cuda" else 512
    matrix = torch.ones(size, size, dtype=dtype, device=device)
    fastest = float("inf")
    for _ in range(5):
        started = perf_counter()
        float((matrix @ matrix)[0, 0])  # Waits for it.
        fastest = min(fastest, perf_counter() - started)
    return 2 * size**3 / fastest


def _empty(module: nn.Module) -> None:
    """Takes the content from all weights: tied ones stay one."""
    made: dict[int, Tensor] = {}
    with FakeTensorMode(allow_non_fake_inputs=True):
        for part in module.modules():
            own = {**part._parameters, **part._buffers}  # pyright: ignore[reportPrivateUsage]
            for name, tensor in own.items():
                if tensor is None:
                    continue
                if id(tensor) not in made:
                    empty = torch.empty(tensor.shape, dtype=tensor.dtype)
                    is_weight = isinstance(tensor, nn.Parameter)
                    made[id(tensor)] = (
                        nn.Parameter(empty, tensor.requires_grad) if is_weight else empty
                    )
                setattr(part, name, made[id(tensor)])


class Allocations(TorchDispatchMode):
    """Adds up what operations allocate, until it is freed."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        """Bytes."""
        self.flops = 0
        """Operations of matrix products, convolutions and attention."""
        self._now = 0
        self._known: dict[int, weakref.ref[Any]] = {}

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.ops.aten.index.Tensor:
            args = [args[0], _without_masks(args[1])]
        settings: dict[str, Any] = kwargs or {}
        for tensor in tree_leaves((args, settings)):
            if isinstance(tensor, Tensor):  # What was there before is not allocated by its views.
                self._count(tensor, is_new=False)
        result = func(*args, **settings)
        if (count := flop_registry.get(func.overloadpacket)) is not None:
            self.flops += count(*args, **settings, out_val=result)
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._count(tensor)
        return result

    def _count(self, tensor: Tensor, *, is_new: bool = True) -> None:
        storage = tensor.untyped_storage()
        key, size = id(storage), storage.nbytes() if is_new else 0
        if key not in self._known:
            self._known[key] = weakref.ref(storage, self._freeing(key, size))
            self._now += size
            self.peak = max(self.peak, self._now)

    def _freeing(self, key: int, size: int) -> Callable[[Any], None]:
        def free(_: Any) -> None:
            del self._known[key]
            self._now -= size

        return free


def _without_masks(indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Masks of known content as the positions that they choose, whose number is then known."""
    chosen: list[Tensor | None] = []
    for index in indices:
        if index is not None and index.dtype == torch.bool:
            chosen += index.nonzero().unbind(1)
        else:
            chosen.append(index)
    return chosen

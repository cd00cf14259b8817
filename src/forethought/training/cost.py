"""The memory and the time of an update, known without doing it.

The model's own forward and backward pass run on tensors that have a shape and no content
(PyTorch's fake tensors): every operation is asked what it would allocate, read and compute, so that
any architecture counts, its image tower, adapters, recomputed layers and half precision included.
Token ids keep their content: where an image stands decides shapes.
"""

import contextlib
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter, process_time
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten
from torch.utils.flop_counter import flop_registry

from forethought.models.actor_critic import ActorCritic, Scores, ValueHead
from forethought.models.batching import TokenBatch
from forethought.models.loading import LoadedModel
from forethought.training.processes import attention_for


class Blank(NamedTuple):
    """A tensor but for its content."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    def filled(self) -> Tensor:
        """With zeros."""
        return torch.empty_strided(self.shape, self.stride, dtype=self.dtype).zero_()


class Operation(NamedTuple):
    """One of the operations that a pass is made of."""

    function: Any
    arguments: tuple[Any, ...]
    """The leaves of what it was called with, tensors as `Blank`."""
    structure: TreeSpec
    flops: int

    @property
    def dtype(self) -> torch.dtype:
        """Of the first tensor."""
        return next(leaf.dtype for leaf in self.arguments if isinstance(leaf, Blank))

    def call(self) -> Callable[[], Any]:
        """Does it, on zeros."""
        leaves = [leaf.filled() if isinstance(leaf, Blank) else leaf for leaf in self.arguments]
        arguments, settings = tree_unflatten(leaves, self.structure)
        return lambda: self.function(*arguments, **settings)


class UpdateCost(NamedTuple):
    """What one optimizer step takes, on one process."""

    trained: int
    """Parameters."""
    responses: int
    """Of one micro-batch."""
    weights: int
    """Bytes, of frozen ones too."""
    moments: int
    """Bytes of Adam's."""
    peak: int
    """Most bytes of activations and gradients at a time."""
    forward: Counter[Operation]
    """Of one micro-batch."""
    backward: Counter[Operation]
    """Of one micro-batch, layers that are recomputed included."""

    @property
    def flops(self) -> int:
        """Floating-point operations of one micro-batch, forwards and backwards."""
        return sum(
            operation.flops * count
            for operations in (self.forward, self.backward)
            for operation, count in operations.items()
        )

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
    forward: Counter[Operation] = Counter()
    backward: Counter[Operation] = Counter()
    with attention_for(precision, _device(), recomputes=recomputes), tracked:
        for _ in range(min(micro_batches, 2)):
            tracked.operations = forward = Counter()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
                scores: Scores = module(batch)
            loss = scores.logprobs_BT.sum() + scores.entropies_BT.sum()
            if scores.values_B is not None:
                loss = loss + scores.values_B.sum()
            del scores
            tracked.operations = backward = Counter()
            loss.backward()
            del loss
    return UpdateCost(
        trained=sum(p.numel() for p in parameters if p.requires_grad),
        responses=len(batch.targets_BT),
        weights=sum(p.nbytes for p in parameters),
        moments=2 * trained,
        peak=tracked.peak,
        forward=forward,
        backward=backward,
    )


LONGEST = 5e10
"""Floating-point operations of the longest operation that is tried on the CPU."""


def seconds_of(operations: Counter[Operation]) -> float:
    """How long they take here, with the threads that there are, while nothing else runs.

    Each that differs from all others is done three times on zeros, and the fastest counts. A model
    is made of equal layers, so that this takes about as long as one layer. Products that would take
    longer than `LONGEST`, and all that a GPU would do, are counted at the speed of a plain one.
    """
    small, flops_per_second = nn.Sequential(*[nn.Tanh() for _ in range(1000)]), cache(measure_flops)
    total = operations.total() * fastest(lambda: small(torch.ones(1))) / 1000
    longest = 0 if torch.cuda.is_available() else LONGEST
    with torch.no_grad():
        for operation, count in operations.items():
            if operation.flops > longest:
                total += count * operation.flops / flops_per_second(operation.dtype)
            elif not operation.function.is_view and longest:
                with contextlib.suppress(RuntimeError):  # Its content decides: of a mask, say.
                    total += count * fastest(operation.call())
    return total


class Speed(NamedTuple):
    """Seconds that things take on this machine."""

    update: float
    """An optimizer step."""
    forward: float
    """A forward pass of one response, its share of a micro-batch."""


def speed_of(cost: UpdateCost, *, micro_batches: int) -> Speed:
    """What an optimizer step of so many micro-batches takes here."""
    forward, backward = seconds_of(cost.forward), seconds_of(cost.backward)
    update = micro_batches * (forward + backward) + adam_seconds(cost.trained)
    return Speed(update, forward / cost.responses)


def measure_flops(dtype: torch.dtype) -> float:
    """Floating-point operations per second that matrix products reach on this machine now."""
    size = 4096 if torch.cuda.is_available() else 512
    matrix = torch.ones(size, size, dtype=dtype, device=_device())
    return 2 * size**3 / fastest(lambda: matrix @ matrix)


def adam_seconds(trained: int) -> float:
    """How long Adam takes here for so many parameters."""
    count = 1 << 22
    parameter = nn.Parameter(torch.zeros(count, device=_device()))
    parameter.grad = torch.zeros_like(parameter)
    return trained / count * fastest(torch.optim.Adam([parameter], fused=True).step)


def fastest(work: Callable[[], Any]) -> float:
    """Seconds of the fastest of three. What other processes take from one thread does not count;
    of several threads there is no such clock."""
    clock = process_time if torch.get_num_threads() == 1 else perf_counter
    taken: list[float] = []
    for _ in range(3):
        started = clock()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        taken.append(clock() - started)
    return min(taken)


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def token_step(loaded: LoadedModel, rows: int) -> Counter[Operation]:
    """The operations of a forward pass of one token in each of some rows, without those that read
    the cache of keys and values.

    Args:
        loaded: whose weights `update_cost` has emptied.
    """
    model: Any = loaded.model
    tracked = Allocations()
    ids_B1 = torch.zeros(rows, 1, dtype=torch.long)
    with torch.no_grad(), tracked:
        model(input_ids=ids_B1, use_cache=False).logits.float()
    return tracked.operations


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
    """Adds up what operations allocate, until it is freed, and notes what each of them takes."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        """Bytes."""
        self.operations: Counter[Operation] = Counter()
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
        count = flop_registry.get(func.overloadpacket)
        flops = 0 if count is None else count(*args, **settings, out_val=result)
        leaves, structure = tree_flatten((list(args), settings))
        blanks = tuple(
            Blank(tuple(leaf.shape), leaf.stride(), leaf.dtype)
            if isinstance(leaf, Tensor)
            else leaf
            for leaf in leaves
        )
        self.operations[Operation(func, blanks, structure, flops)] += 1
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

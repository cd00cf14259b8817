"""Sharded training: every process keeps a part of each weight (FSDP2, by Accelerate).

Inside an optimizer step the weights are sharded: a layer's are gathered for its forward pass and
again for its backward pass, and let go after each; gradients and the optimizer's moments exist as
parts alone. Between two steps the weights are whole, on every process: a policy then acts and
scores as on one process, at its own pace and without a word to the others.
"""

import copy
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple, cast

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin, gather_object
from torch import Tensor, nn
from torch.distributed import _composable_state
from torch.distributed.fsdp import FSDPModule, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

from forethought.errors import ConfigError
from forethought.models.actor_critic import ActorCritic
from forethought.models.batching import TokenBatch


def is_sharded(accelerator: Accelerator) -> bool:
    """Whether Accelerate was launched with FSDP2."""
    return accelerator.distributed_type == DistributedType.FSDP


def shard_on_cpu(accelerator: Accelerator) -> None:
    """Makes CPU processes that were launched with FSDP settings use them: Accelerate itself takes
    them up on accelerators alone."""
    accelerator.state.fsdp_plugin = FullyShardedDataParallelPlugin()
    accelerator.state.distributed_type = DistributedType.FSDP


def settle_plugin(accelerator: Accelerator) -> None:
    """Sets what training decides and not the launch: precision, and who reads the weights.

    Raises:
        ConfigError: FSDP in its first version.
    """
    plugin: Any = accelerator.state.fsdp_plugin
    if plugin.fsdp_version != 2:
        raise ConfigError(
            f"accelerate launched FSDP version {plugin.fsdp_version} — expected fsdp_version: 2 "
            "in its config (FSDP_VERSION=2)"
        )
    # Log-probs and values stay fp32: the forward pass is cast by autocast, as without shards.
    plugin.mixed_precision_policy = None
    plugin.cpu_ram_efficient_loading = False


class _Pass(NamedTuple):
    """Arguments of a forward pass."""

    batch: TokenBatch
    settings: Mapping[str, Any]


class _Plain(NamedTuple):
    """A part of a module before it was sharded, without its weights."""

    part: nn.Module
    is_a: type
    attributes: dict[str, Any]


class Shards:
    """The weights of one module and its critic, sharded while it learns.

    The critic's head, a few layers that `rescale` writes to, is whole on every process.
    """

    def __init__(
        self,
        module: ActorCritic,
        accelerator: Accelerator,
        optimizers: Sequence[torch.optim.Optimizer],
    ) -> None:
        """
        Args:
            module: equal on all processes; is changed in place, until `release`. Its weights are
                whole afterwards.
            optimizers: over its parameters; take the sharded ones in their place.
        """
        plugin: Any = accelerator.state.fsdp_plugin
        if plugin.transformer_cls_names_to_wrap is None:
            plugin.transformer_cls_names_to_wrap = _layer_classes(module)
        plugin.ignored_modules = [] if module.value_head is None else [module.value_head]
        self._plain = [_Plain(part, type(part), _attributes(part)) for part in module.modules()]
        prepared: Any = accelerator.prepare(module, *optimizers)
        self.optimizers: list[Any] = list(prepared[1:])
        """Accelerate's own, over the shards."""
        self.trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
        """The shards, by name."""
        self._module, self._root = module, cast(FSDPModule, module)
        self._parts = [m for m in module.modules() if isinstance(m, FSDPModule)]
        self._process = accelerator.process_index
        self._last: _Pass | None = None
        for part in self._parts:  # Parts of the loss add up over processes.
            part.set_gradient_divide_factor(1.0)
            part.set_force_sum_reduction_for_comms(enable=True)  # Gloo has no other.
        module.register_forward_pre_hook(self._remember, with_kwargs=True)
        register_fsdp_forward_method(module, "action_hidden")
        vars(module)["action_hidden"] = self._remembering(module.action_hidden)
        self._make_root()
        self.gather()

    def _make_root(self) -> None:
        """FSDP takes the first module that runs for the outermost one; generation runs an inner
        one."""
        module: Any = self._module
        module.first_pass = lambda: None
        register_fsdp_forward_method(module, "first_pass")
        module.first_pass()
        del module.first_pass

    def _remember(self, module: nn.Module, args: tuple[Any, ...], settings: dict[str, Any]) -> None:
        self._last = _Pass(args[0], dict(settings))

    def _remembering(self, hidden: Callable[[TokenBatch, Tensor], Tensor]) -> Any:
        @wraps(hidden)
        def remember(batch: TokenBatch, is_action_BT: Tensor) -> Tensor:
            self._last = _Pass(batch, {})
            return hidden(batch, is_action_BT)

        return remember

    def gather(self) -> None:
        """Makes the weights whole on every process, until `split`."""
        for part in self._parts:
            part.set_reshard_after_forward(reshard_after_forward=False, recurse=False)
            part.unshard()

    def split(self) -> None:
        """Keeps this process's shards alone."""
        for part in self._parts:
            part.reshard()
            part.set_reshard_after_forward(part is not self._root, recurse=False)

    def begin_step(self, losses: int) -> int:
        """Splits the weights, all processes at once.

        Args:
            losses: micro-batches of this process.

        Returns:
            How many more another process has: every pass of a sharded model is a pass of all.

        Raises:
            ConfigError: this process has none, and no process has run the model before.
        """
        needs = losses == 0 and self._last is None
        counts: list[tuple[int, bool]] = gather_object([(losses, needs)])
        if any(is_needed for _, is_needed in counts):
            self._take_pass_of_another()
        self.split()
        return max(count for count, _ in counts) - losses

    def zero_losses(self, count: int, *, critic_alone: bool) -> Generator[Tensor]:
        """Losses of zero, each with a pass over what this process has seen last.

        Args:
            critic_alone: as `Updater.step` has it. Processes that pass back through the layers
                would wait for those that do not.
        """
        for _ in range(count):
            assert self._last is not None
            settings = dict(self._last.settings)
            if critic_alone:
                settings["critic_gradient"] = False
            scores = self._module(self._last.batch, **settings)
            parts = [] if critic_alone else [scores.logprobs_BT.sum(), scores.entropies_BT.sum()]
            parts += [] if scores.values_B is None else [scores.values_B.sum()]
            yield 0.0 * torch.stack(parts).sum()

    def _take_pass_of_another(self) -> None:
        seen: list[_Pass | None] = gather_object([self._last and _on_cpu(self._last)])
        if self._last is None:
            device = self._module.model.device
            known = [one for one in seen if one is not None]
            if not known:
                raise ConfigError(
                    f"process {self._process} has no part in the first batch, and nothing to run "
                    "in its place — raise batch_size, or launch fewer processes"
                )
            self._last = known[0]._replace(batch=known[0].batch.to(device))

    def release(self) -> None:
        """Makes the module what it was before, with the weights that it has now, whole on every
        process: it may be copied, and sharded again. Of all processes at once."""
        self.split()
        owned = [vars(plain.part)["_parameters"] for plain in self._plain]
        sharded = {id(p): p for own in owned for p in own.values() if isinstance(p, DTensor)}
        whole = {  # Tied weights stay one.
            key: nn.Parameter(cast(DTensor, p.detach()).full_tensor(), p.requires_grad)
            for key, p in sharded.items()
        }
        for (part, is_a, attributes), own in zip(self._plain, owned, strict=True):
            parameters = {name: whole.get(id(p), p) for name, p in own.items()}
            part.__class__ = is_a
            vars(part).clear()
            vars(part).update(attributes, _parameters=parameters)
            # Where FSDP notes, beside the module, that it has sharded it.
            _composable_state._module_state_mapping.pop(part, None)  # pyright: ignore[reportPrivateUsage]

    @contextmanager
    def on_first_process(self) -> Generator[None]:
        """Inside, the first process's module holds whole weights in main memory, to be saved; one
        weight at a time passes through the others."""
        self.split()
        kept: list[tuple[dict[str, Any], str, DTensor]] = []
        whole: dict[int, nn.Parameter] = {}
        for module in self._module.modules():
            own: dict[str, Any] = module._parameters  # pyright: ignore[reportPrivateUsage]
            for name, parameter in own.items():
                if not isinstance(parameter, DTensor):
                    continue
                if id(parameter) not in whole:  # Tied weights stay one.
                    tensor = gathered(parameter.detach(), keep=self._process == 0)
                    whole[id(parameter)] = nn.Parameter(tensor, parameter.requires_grad)
                kept.append((own, name, parameter))
        for own, name, parameter in kept:
            own[name] = whole[id(parameter)]
        try:
            yield
        finally:
            for own, name, parameter in kept:
                own[name] = parameter
            self.gather()


def gathered(tensor: Tensor, *, keep: bool) -> Tensor:
    """A tensor, whole and in main memory where it is kept; of all processes at once.

    Args:
        keep: False: this process only gives its part, and gets an empty tensor.
    """
    if not isinstance(tensor, DTensor):
        return tensor
    whole = tensor.full_tensor()
    return whole.cpu() if keep else whole.new_empty(0)


def placed_like(tensor: Tensor, parameter: Tensor) -> Tensor:
    """A whole tensor on a parameter's device, or this process's shard of it."""
    if not isinstance(parameter, DTensor):
        return tensor.to(parameter.device)
    mesh, placements = parameter.device_mesh, parameter.placements
    return distribute_tensor(tensor.to(parameter.device), mesh, placements, src_data_rank=None)


def _attributes(module: nn.Module) -> dict[str, Any]:
    """All but the weights; hooks, buffers and submodules in dictionaries of their own."""
    return {
        name: copy.copy(one) if isinstance(one, dict) else one
        for name, one in vars(module).items()
        if name != "_parameters"
    }


def _layer_classes(module: ActorCritic) -> list[str]:
    """Names of the classes that the model's authors say are not to be cut: its layers."""
    named: set[str] = set(getattr(module.model, "_no_split_modules", None) or ())
    for part in module.model.modules():
        named |= set(getattr(part, "_no_split_modules", None) or ())
    return sorted(named & {type(part).__name__ for part in module.modules()})


def _on_cpu(one: _Pass) -> _Pass:
    return one._replace(batch=one.batch.to(torch.device("cpu")))

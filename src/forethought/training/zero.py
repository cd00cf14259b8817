"""Partitioned training: the optimizer's moments are divided among processes (ZeRO-2, DeepSpeed).

The model is whole on every process all the time, and a policy acts and scores as on one process.
At the end of an optimizer step each process gets its part of the sum of all gradients, moves that
part of the weights, and sends it to the others.
"""

import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DeepSpeedPlugin, DistributedType, gather_object
from torch import Tensor, nn

from forethought.errors import ConfigError

INSTALL = 'pip install "forethought[deepspeed]"'
_NOT_3 = (
    " (stage 3 would cut frozen weights and adapters, too, and gather them for every token that is "
    "generated; FSDP with fsdp_version 2 divides weights)"
)
_MOMENTS = ("exp_avg", "exp_avg_sq")
_LARGEST_BUCKET = 500_000_000
"""Gradients that are sent at a time at most: DeepSpeed's own choice. It allots as many."""


def is_partitioned(accelerator: Accelerator) -> bool:
    """Whether Accelerate was launched with DeepSpeed."""
    return accelerator.distributed_type == DistributedType.DEEPSPEED


def require_deepspeed() -> None:
    """To be called before Accelerate looks at the launch.

    Raises:
        ConfigError: the package is missing.
    """
    if importlib.util.find_spec("deepspeed") is None:
        raise ConfigError(f"accelerate launched DeepSpeed, which is not installed — run: {INSTALL}")
    if not torch.cuda.is_available():  # Accelerate would take each process for the only one.
        os.environ["ACCELERATE_USE_CPU"] = "true"


def partition_on_cpu(accelerator: Accelerator) -> None:
    """Makes CPU processes that were launched with DeepSpeed use it: Accelerate itself takes it up
    on accelerators alone."""
    plugin = DeepSpeedPlugin()
    plugin.select(_from_accelerator_state=True)
    accelerator.state.deepspeed_plugins = plugin
    accelerator.state.distributed_type = DistributedType.DEEPSPEED
    # Of its C++ extensions DeepSpeed builds, when it joins the processes, one that is needed for
    # inference alone, in minutes. It builds what stands here; training on CPUs needs none.
    vars(import_module("deepspeed.ops"))["__compatible_ops__"] = {}


def settle_config(accelerator: Accelerator) -> None:
    """Sets what training decides and not the launch: batches, and that weights stay fp32.

    Raises:
        ConfigError: another stage than 2, or a part that training has of its own.
    """
    plugin: Any = accelerator.state.deepspeed_plugin
    stage = plugin.zero_stage
    if stage != 2:
        raise ConfigError(
            f"accelerate launched DeepSpeed with zero_stage {stage} — expected zero_stage: 2 in "
            f"its config{_NOT_3 if stage == 3 else ''}"
        )
    config: dict[str, Any] = plugin.deepspeed_config
    offload = config["zero_optimization"].get("offload_optimizer") or {}
    own = [name for name in ("optimizer", "scheduler") if name in config]
    own += ["offload_optimizer"] if offload.get("device", "none") != "none" else []
    if own:
        raise ConfigError(
            f"accelerate launched DeepSpeed with {own[0]} in its config — expected none: the "
            "optimizer is that of this run's settings"
        )
    config.update(
        train_batch_size="auto",
        train_micro_batch_size_per_gpu=1,
        gradient_accumulation_steps=1,
        gradient_allreduce_op="sum",  # Parts of the loss add up over processes.
        # Log-probs and values stay fp32: the forward pass is cast by autocast, as without parts.
        bf16={"enabled": False},
        fp16={"enabled": False},
    )


class Partitions:
    """The moments of one module's trained weights, divided among the processes while it learns."""

    def __init__(
        self,
        module: nn.Module,
        accelerator: Accelerator,
        optimizer: torch.optim.Optimizer,
        max_gradient_norm: float,
    ) -> None:
        """
        Args:
            module: equal on all processes; its weights become views of one long tensor.
            optimizer: Adam, over its parameters; takes this process's part of them in their place.
        """
        self.trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
        self._groups: list[list[Tensor]] = [list(one["params"]) for one in optimizer.param_groups]
        plugin: Any = accelerator.state.deepspeed_plugin
        config: dict[str, Any] = plugin.deepspeed_config
        config["gradient_clipping"] = max_gradient_norm
        zero: dict[str, Any] = config["zero_optimization"]
        if zero.get("reduce_bucket_size", "auto") == "auto":
            elements = sum(parameter.numel() for parameter in self.trained.values())
            zero["reduce_bucket_size"] = min(elements, _LARGEST_BUCKET)
        prepared: Any = accelerator.prepare(module, optimizer)
        self._engine, self.optimizer = prepared
        self._state = [optimizer.state[one["params"][0]] for one in optimizer.param_groups]
        """Of this process's part of each group."""
        for state, group in zip(self._state, optimizer.param_groups, strict=True):
            (part,) = group["params"]
            state["step"] = torch.tensor(0.0, device=part.device)  # Where fused Adam keeps it.
            state.update({key: torch.zeros_like(part) for key in _MOMENTS})
        # Tells each weight where its moments are: DeepSpeed itself does so in its first step.
        self._engine.optimizer._lazy_init_hp_params_optimizer_state()
        self._deepspeed: Any = import_module("deepspeed.utils")

    def step(self, losses: Sequence[Callable[[], Tensor]]) -> None:
        """Sums up all processes' gradients, clips them, and moves the weights; these stay where
        they are if the gradients are not finite.

        Args:
            losses: parts of the loss, of this process; it may have none.
        """
        for parameter in self.trained.values():
            # DeepSpeed keeps a copy of its part, which is what moves: `ValueHead.rescale` and
            # others write to the weights themselves.
            self._deepspeed.safe_set_full_fp32_param(parameter, parameter.detach())
        # DeepSpeed would send gradients after every backward pass, and add up what comes first on
        # one process with what comes first on another: processes have unequal numbers of passes.
        with self._engine.coalesce_grad_reduction():
            for loss in losses:
                self._engine.backward(loss())
            is_used = self._is_used()
            for parameter in self.trained.values():
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
        self._engine.set_gradient_accumulation_boundary(is_boundary=True)
        self._engine.step()
        for state, used in zip(self._state, is_used, strict=True):
            if not used:  # While the critic warms up: Adam leaves out what has no gradient.
                state["step"] -= 1

    def _is_used(self) -> list[bool]:
        """Per group, whether any process has a gradient."""
        mine = tuple(any(p.grad is not None for p in group) for group in self._groups)
        return [any(one) for one in zip(*gather_object([mine]), strict=True)]

    def remembered(self) -> Iterator[tuple[str, Tensor]]:
        """What Adam remembers, by parameter and name, each whole; for all processes at once."""
        for name, parameter, state in self._named():
            yield f"{name}/step", state["step"].clone()
            for key in _MOMENTS:
                yield f"{name}/{key}", self._deepspeed.safe_get_full_optimizer_state(parameter, key)

    def recall(self, saved: Mapping[str, Tensor]) -> None:
        """Puts what Adam remembers back to what `remembered` gave."""
        for name, parameter, state in self._named():
            # A weight without gradients counts none; its group has one count.
            state["step"].copy_(torch.maximum(state["step"].cpu(), saved[f"{name}/step"]))
            for key in _MOMENTS:
                moment = saved[f"{name}/{key}"].to(parameter.device)
                self._deepspeed.safe_set_full_optimizer_state(parameter, moment, key)

    @property
    def names(self) -> set[str]:
        """Of what `remembered` gives."""
        return {f"{name}/{key}" for name in self.trained for key in ("step", *_MOMENTS)}

    def _named(self) -> Iterator[tuple[str, Tensor, dict[str, Tensor]]]:
        names = {id(parameter): name for name, parameter in self.trained.items()}
        for group, state in zip(self._groups, self._state, strict=True):
            for parameter in group:
                yield names[id(parameter)], parameter, state

    def release(self) -> None:
        """Takes DeepSpeed's hooks off the module, which may then be copied, and prepared again;
        Accelerate frees the rest."""
        self._engine.module_forward_pre_hook.remove()
        self._engine.module_forward_post_hook.remove()

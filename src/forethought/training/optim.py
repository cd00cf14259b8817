"""One optimizer step from many micro-batches, on one process or on several."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from forethought.configs.parts import OptimizerConfig
from forethought.errors import ConfigError, DivergenceError
from forethought.models.actor_critic import ActorCritic
from forethought.training.sharding import Shards, is_sharded
from forethought.training.zero import Partitions, is_partitioned


def learning_rate_factor(step: float, *, total_steps: int, config: OptimizerConfig) -> float:
    """Learning rate of an optimizer step as a multiple of the highest one.

    Rises linearly over the warm-up, then falls to `final_learning_rate` at `total_steps`.
    """
    if step < config.warmup_steps:
        return min(step + 1, config.warmup_steps) / config.warmup_steps
    if config.schedule == "constant":
        return 1.0
    final = config.final_learning_rate / config.learning_rate
    decaying = max(total_steps - config.warmup_steps, 1)
    progress = min((step - config.warmup_steps) / decaying, 1.0)
    if config.schedule == "linear":
        return 1.0 - (1.0 - final) * progress
    return final + (1.0 - final) * 0.5 * (1.0 + math.cos(math.pi * progress))


VALUE_HEAD = "value_head."
"""Prefix of the critic's own parameters."""

_NOT_INSIDE = ("embed", "lm_head", VALUE_HEAD)
"""Matrices with these in their names are tables of vectors, or the critic's: not for Muon."""
_BESIDE_MUON = 0.5
"""Adam's rate as a multiple of Muon's: docs/results/points24.md."""


def make_optimizers(
    trained: Mapping[str, Tensor], config: OptimizerConfig, critic_learning_rate: float
) -> list[torch.optim.Optimizer]:
    """One optimizer, or Muon and one for what Muon is not made for.

    Muon: Jordan 2024, with the step sizes of Liu et al. 2025, Eq. 4 (0.2 √max(rows, columns)),
    so that a rate that suits Adam suits it. Every group's "highest" is the rate that its
    schedule starts from.

    Args:
        trained: parameters by their names.
        config: the rate of the model.
        critic_learning_rate: that of the value head.
    """
    rate, optimizers = config.learning_rate, list[torch.optim.Optimizer]()
    matrices = [p for n, p in trained.items() if config.algorithm == "muon" and is_for_muon(n, p)]
    if matrices:
        group = {"params": matrices, "highest": rate}
        optimizers.append(
            torch.optim.Muon([group], lr=rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
        )
        rate *= _BESIDE_MUON
    taken = {id(matrix) for matrix in matrices}
    rest = {n: p for n, p in trained.items() if id(p) not in taken}
    head = [p for n, p in rest.items() if n.startswith(VALUE_HEAD)]
    body = [p for n, p in rest.items() if not n.startswith(VALUE_HEAD)]
    groups = [{"params": body, "highest": rate}, {"params": head, "highest": critic_learning_rate}]
    filled = [group for group in groups if group["params"]]
    if filled:
        optimizers.append(torch.optim.Adam(filled, lr=rate, eps=config.epsilon, fused=True))
    return optimizers


def is_for_muon(name: str, parameter: Tensor) -> bool:
    """Whether a parameter is a matrix inside a layer."""
    return parameter.ndim == 2 and not any(part in name for part in _NOT_INSIDE)


class ScheduleSpan(NamedTuple):
    """What an iteration uses up of the schedule of learning rates, in iterations as planned."""

    start: float
    stop: float

    @classmethod
    def of_steps(cls, played: int, steps: int, planned: int) -> "ScheduleSpan":
        """As much of it as of the environment steps.

        Args:
            played: steps before the iteration.
            steps: its own; whole episodes may take more than was planned.
            planned: steps of an iteration.
        """
        return cls(played / planned, (played + steps) / planned)

    def at(self, done: float) -> float:
        """The place on the schedule when this share of the iteration's updates is done."""
        return self.start + done * (self.stop - self.start)


class Updater:
    """Accumulates gradients over micro-batches and processes, clips them, and steps."""

    def __init__(
        self,
        *,
        module: nn.Module,
        accelerator: Accelerator,
        config: OptimizerConfig,
        total_steps: int,
        critic_learning_rate: float | None = None,
    ) -> None:
        """
        Args:
            module: the model and its critic; parameters that require a gradient are trained.
            total_steps: optimizer steps over which the learning rates decay.
            critic_learning_rate: the value head's highest rate; None: the model's.

        Raises:
            ConfigError: to be sharded, and no model with a critic; or by Muon, which needs whole
                matrices.
        """
        self._accelerator = accelerator
        self._config = config
        self._total_steps = total_steps
        self.trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
        optimizers = make_optimizers(
            self.trained, config, critic_learning_rate or config.learning_rate
        )
        if accelerator.num_processes > 1:
            # Weights that a model's files lack were drawn by each process for itself.
            broadcast([parameter.data for parameter in module.parameters()])
        self.module: nn.Module = module
        self._shards: Shards | None = None
        self.partitions: Partitions | None = None
        """What DeepSpeed has divided, where it was launched."""
        if is_sharded(accelerator):
            self._shards = _sharded(module, accelerator, optimizers)
            self.trained, self.optimizers = self._shards.trained, self._shards.optimizers
        elif is_partitioned(accelerator):
            optimizer = _one_adam(optimizers, "their moments are divided")
            self.partitions = Partitions(module, accelerator, optimizer, config.max_gradient_norm)
            self.optimizers = [self.partitions.optimizer]
        else:
            # Not as for training, which would wrap it: gradients are added up below, per step.
            self.module = accelerator.prepare_model(module, evaluation_mode=True)
            self.optimizers = [accelerator.prepare_optimizer(one) for one in optimizers]
        self.steps = 0
        """Optimizer steps done."""

    def whole_on_first_process(self) -> AbstractContextManager[None]:
        """Inside, the first process's module can be saved; for all processes at once."""
        return nullcontext() if self._shards is None else self._shards.on_first_process()

    def release(self) -> None:
        """Ends its work: the module is plain and whole again, and nothing keeps the optimizers'
        memory. For all processes at once."""
        if self._shards is not None:
            self._shards.release()
        if self.partitions is not None:
            self.partitions.release()
        self._accelerator.free_memory()

    def step(
        self,
        losses: Sequence[Callable[[], Tensor]],
        *,
        position: float | None = None,
        critic_alone: bool = False,
    ) -> float:
        """One optimizer step.

        Args:
            losses: one function per micro-batch of this process, giving that
                micro-batch's part of the loss: its sum divided by the number of elements
                in the *global* batch. Parts add up, over processes too; a process that has
                no share in the batch has none.
            position: where on the schedule of learning rates this is, in optimizer steps; None:
                as many as were done. For algorithms that do not know how many there will be.
            critic_alone: whether the losses have gradients of the value head and of nothing else.

        Returns:
            The gradient's norm before clipping.

        Raises:
            DivergenceError: that norm is not finite. The weights are as they were.
        """
        factor = learning_rate_factor(
            self.steps if position is None else position,
            total_steps=self._total_steps,
            config=self._config,
        )
        for group in (group for one in self.optimizers for group in one.param_groups):
            group["lr"] = group["highest"] * factor
        if self.partitions is not None:
            self.partitions.step(losses)
        else:
            self._add_up_gradients(losses, critic_alone)
        norm = self._accelerator.clip_grad_norm_(
            list(self.trained.values()), self._config.max_gradient_norm
        )
        assert norm is not None
        norm = float(norm)
        if not math.isfinite(norm):
            raise DivergenceError(
                f"training diverged: the gradient's norm in optimizer step {self.steps + 1} is "
                f"{norm}, expected a number — start another run with a lower "
                f"optimizer.learning_rate than {self._config.learning_rate:g}"
            )
        for optimizer in self.optimizers:  # DeepSpeed's has stepped, and does nothing here.
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if self._shards is not None:
            self._shards.gather()
        self.steps += 1
        return norm

    def _add_up_gradients(self, losses: Sequence[Callable[[], Tensor]], critic_alone: bool) -> None:
        missing = 0 if self._shards is None else self._shards.begin_step(len(losses))
        for loss in losses:
            self._accelerator.backward(loss())
        if self._shards is not None:
            for zero in self._shards.zero_losses(missing, critic_alone=critic_alone):
                self._accelerator.backward(zero)
        self._share_gradients()

    def _share_gradients(self) -> None:
        """Adds up the gradients of all processes; those of shards are sums already.

        A process may have no part in a batch, and a weight none in a process's loss (a vision
        tower where there are only words): that counts as zero.
        """
        if self._accelerator.num_processes == 1:
            return
        parameters = [p for p in self.trained.values() if not isinstance(p, DTensor)]
        is_used = torch.tensor([parameter.grad is not None for parameter in parameters])
        users = self._summed(is_used.float().to(self._accelerator.device)).tolist()
        for parameter, count in zip(parameters, users, strict=True):
            if count:
                mine = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                parameter.grad = self._summed(mine)

    def _summed(self, tensor: Tensor) -> Tensor:
        summed = self._accelerator.reduce(tensor, reduction="sum")
        assert isinstance(summed, Tensor)
        return summed


def _sharded(
    module: nn.Module, accelerator: Accelerator, optimizers: Sequence[torch.optim.Optimizer]
) -> Shards:
    if not isinstance(module, ActorCritic):
        raise ConfigError(
            "accelerate launched FSDP, expected data parallelism (MULTI_GPU, MULTI_CPU) for an "
            "algorithm that trains other modules than a model with its critic"
        )
    _one_adam(optimizers, "the weights are sharded")
    return Shards(module, accelerator, optimizers)


def _one_adam(optimizers: Sequence[torch.optim.Optimizer], where: str) -> torch.optim.Optimizer:
    if any(isinstance(one, torch.optim.Muon) for one in optimizers):
        raise ConfigError(
            "optimizer.algorithm is 'muon', which needs whole matrices — expected 'adam' where "
            f"{where}"
        )
    return optimizers[0]

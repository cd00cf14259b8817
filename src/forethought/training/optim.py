"""One optimiser step from many micro-batches, on one process or on several."""

import math
from collections.abc import Callable, Sequence

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast
from torch import Tensor, nn

from forethought.config import OptimizerConfig
from forethought.errors import DivergenceError


def learning_rate_factor(step: int, *, total_steps: int, config: OptimizerConfig) -> float:
    """Learning rate of an optimiser step as a multiple of the highest one.

    Rises linearly over the warm-up, then falls to `final_learning_rate` at `total_steps`.
    """
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
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
            total_steps: optimiser steps over which the learning rates decay.
            critic_learning_rate: the value head's highest rate; None: the model's.
        """
        self._accelerator = accelerator
        self._config = config
        self._total_steps = total_steps
        self.trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
        head = [p for n, p in self.trained.items() if n.startswith(VALUE_HEAD)]
        body = [p for n, p in self.trained.items() if not n.startswith(VALUE_HEAD)]
        groups = [{"params": body}, {"params": head}] if head else [{"params": body}]
        self._rates = [config.learning_rate, critic_learning_rate or config.learning_rate]
        optimizer = torch.optim.Adam(
            groups, lr=config.learning_rate, eps=config.epsilon, fused=True
        )
        # Not as for training, which would wrap it: gradients are added up below, once per step.
        self.module = accelerator.prepare_model(module, evaluation_mode=True)
        self.optimizer = accelerator.prepare_optimizer(optimizer)
        if accelerator.num_processes > 1:
            # Weights that a model's files lack were drawn by each process for itself.
            broadcast([parameter.data for parameter in module.parameters()])
        self.steps = 0
        """Optimiser steps done."""

    def step(self, losses: Sequence[Callable[[], Tensor]]) -> float:
        """One optimiser step.

        Args:
            losses: one function per micro-batch of this process, giving that
                micro-batch's part of the loss: its sum divided by the number of elements
                in the *global* batch. Parts add up, over processes too; a process that has
                no share in the batch has none.

        Returns:
            The gradient's norm before clipping.

        Raises:
            DivergenceError: that norm is not finite. The weights are as they were.
        """
        factor = learning_rate_factor(
            self.steps, total_steps=self._total_steps, config=self._config
        )
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=False):
            group["lr"] = rate * factor
        for loss in losses:
            self._accelerator.backward(loss())
        self._share_gradients()
        norm = self._accelerator.clip_grad_norm_(
            list(self.trained.values()), self._config.max_gradient_norm
        )
        assert norm is not None
        norm = float(norm)
        if not math.isfinite(norm):
            raise DivergenceError(
                f"training diverged: the gradient's norm in optimiser step {self.steps + 1} is "
                f"{norm}, expected a number — start another run with a lower "
                f"optimizer.learning_rate than {self._config.learning_rate:g}"
            )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        return norm

    def _share_gradients(self) -> None:
        """Adds up the gradients of all processes.

        A process may have no part in a batch, and a weight none in a process's loss (a vision
        tower where there are only words): that counts as zero.
        """
        if self._accelerator.num_processes == 1:
            return
        parameters = list(self.trained.values())
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

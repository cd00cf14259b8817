"""One optimiser step from many micro-batches, on one process or on several."""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from forethought.config import OptimizerConfig


def make_optimizer(module: nn.Module, config: OptimizerConfig) -> torch.optim.AdamW:
    """AdamW over the parameters that require a gradient; matrices alone decay."""
    trained = [p for p in module.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, lr=config.learning_rate, eps=config.epsilon, fused=True, foreach=False
    )


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


def make_schedule(
    optimizer: torch.optim.Optimizer, config: OptimizerConfig, *, total_steps: int
) -> LambdaLR:
    """The schedule as PyTorch keeps it."""
    return LambdaLR(
        optimizer,
        lambda step: learning_rate_factor(step, total_steps=total_steps, config=config),
    )


class Updater:
    """Accumulates gradients over micro-batches and processes, clips them, and steps."""

    def __init__(
        self,
        *,
        module: nn.Module,
        accelerator: Accelerator,
        config: OptimizerConfig,
        total_steps: int,
    ) -> None:
        self._accelerator = accelerator
        self.optimizer = make_optimizer(module, config)
        self.schedule = make_schedule(self.optimizer, config, total_steps=total_steps)
        self.module = accelerator.prepare_model(module)
        self._trained = [p for p in module.parameters() if p.requires_grad]
        self._max_gradient_norm = config.max_gradient_norm

    @property
    def learning_rate(self) -> float:
        """Of the next step."""
        return float(self.schedule.get_last_lr()[0])

    def step(self, losses: Sequence[Callable[[], Tensor]]) -> float:
        """One optimiser step.

        Args:
            losses: one function per micro-batch of this process, giving that
                micro-batch's part of the loss: its sum divided by the number of elements
                in the *global* batch. Parts add up; processes are summed, too.

        Returns:
            The gradient's norm before clipping.
        """
        processes = self._accelerator.num_processes
        for index, loss in enumerate(losses):
            is_last = index == len(losses) - 1
            # Gradients cross processes once, with the last micro-batch.
            quietly = nullcontext() if is_last else self._accelerator.no_sync(self.module)
            with quietly:
                # Distributed data parallelism averages over processes: undo the division.
                self._accelerator.backward(loss() * processes)
        norm = torch.nn.utils.clip_grad_norm_(self._trained, self._max_gradient_norm)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(norm)

"""The vocabulary projection: logits from last hidden states, a bounded number at a time.

A model of 49,152 tokens makes 400 MB of fp32 logits of 2,048 positions, several times over
before the backward pass is done. Here they are made in chunks, each reduced to a few numbers per
token at once; the backward pass makes them a second time.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

LARGEST = 2**24
"""Logits that are held at a time: 64 MiB in fp32. The tiny models' micro-batches are below."""

SCALINGS = ("final_logit_softcapping", "logit_scale", "logits_scaling")
"""What some architectures do to the projection's output: Gemma, Cohere, Granite."""

Score = Callable[..., tuple[Tensor, ...]]
"""Logits [n, V] and further columns [n, …] to columns [n, …]."""


class Projection:
    """A model's own, which can be left out of its forward pass and done afterwards."""

    def __init__(self, model: PreTrainedModel) -> None:
        module = model.get_output_embeddings()
        assert isinstance(module, nn.Module)
        self._module: Any = module
        self._scaling = _scaling(model)
        self._hidden: Tensor | None = None
        self._is_left_out = False
        self._is_applied = False
        self._is_checked = False
        # The projection's input is the last hidden state, in every architecture; asking
        # for `output_hidden_states` would keep those of all layers.
        module.register_forward_pre_hook(self._before)

    @property
    def vocabulary(self) -> int:
        """Tokens that are scored."""
        return int(self._module.weight.shape[0])

    def _before(self, module: nn.Module, arguments: tuple[Tensor, ...]) -> Any:
        if self._is_applied:
            return None
        self._hidden = arguments[0]
        return (arguments[0][:, :1],) if self._is_left_out else None

    def take_hidden(self) -> Tensor:
        """The hidden states [R, W, H] that the last forward pass of the model projected."""
        assert self._hidden is not None
        hidden, self._hidden = self._hidden, None
        return hidden

    def leave_out(self, forward: Callable[[], Tensor]) -> Tensor:
        """Runs the model's forward pass without its projection: its input [R, W, H].

        One position of each row is projected all the same. The first time it is compared: should
        the model make something else of it than this class does, that is an error, not a wrong
        number.

        Raises:
            RuntimeError: it does.
        """
        self._is_left_out = True
        try:
            logits_R1V = forward()
        finally:
            self._is_left_out = False
        hidden_RWH = self.take_hidden()
        if not self._is_checked:
            self._check(hidden_RWH[:, :1], logits_R1V)
        return hidden_RWH

    @torch.no_grad()
    def _check(self, hidden_R1H: Tensor, logits_R1V: Tensor) -> None:
        own_R1V = self(hidden_R1H)
        if not torch.allclose(own_R1V.float(), logits_R1V.float(), 1e-3, 1e-3, equal_nan=True):
            raise RuntimeError(
                "the model makes something of its projection's output that is not known here — "
                f"known are {', '.join(SCALINGS)}"
            )
        self._is_checked = True

    def __call__(self, hidden: Tensor) -> Tensor:
        """Hidden states [..., H] to the logits [..., V] that the model would make of them."""
        self._is_applied = True
        try:
            return self._scaling(self._module(hidden))
        finally:
            self._is_applied = False

    def in_chunks(
        self, score: Score, hidden_NH: Tensor, *columns_N: Tensor, largest: int
    ) -> tuple[Tensor, ...]:
        """What `score` makes of the logits of hidden states and of further columns.

        Args:
            score: row by row: what it makes of one depends on no other.
            largest: logits that are held at a time; those of one row are in any case.
        """

        def score_chunk(hidden_nH: Tensor, *columns_n: Tensor) -> tuple[Tensor, ...]:
            return score(self(hidden_nH), *columns_n)

        rows = max(1, largest // self.vocabulary)
        if len(hidden_NH) <= rows:
            return score_chunk(hidden_NH, *columns_N)
        chunks = [
            # Without a gradient nothing is kept: there is nothing to recompute.
            checkpoint(score_chunk, *parts, use_reentrant=False, preserve_rng_state=False)
            if torch.is_grad_enabled()
            else score_chunk(*parts)
            for parts in zip(*(x.split(rows) for x in (hidden_NH, *columns_N)), strict=True)
        ]
        return tuple(torch.cat(column) for column in zip(*chunks, strict=True))


def scaled_by(model: PreTrainedModel) -> Sequence[str]:
    """Which of `SCALINGS` change this model's logits."""
    text = model.config.get_text_config()
    return [name for name in SCALINGS if getattr(text, name, None) not in (None, 1, 1.0)]


def _scaling(model: PreTrainedModel) -> Callable[[Tensor], Tensor]:
    text = model.config.get_text_config()
    by = scaled_by(model)

    def scale(logits: Tensor) -> Tensor:
        if "logit_scale" in by:
            logits = logits * text.logit_scale
        if "logits_scaling" in by:
            logits = logits / text.logits_scaling
        if "final_logit_softcapping" in by:
            cap = text.final_logit_softcapping
            logits = torch.tanh(logits / cap) * cap
        return logits

    return scale

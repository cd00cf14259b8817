"""How long a sequence a model can read."""

from typing import NamedTuple

from transformers import PretrainedConfig
from transformers.cache_utils import DynamicCache, DynamicLayer

from forethought.errors import PolicyError, PromptTooLongError


class Limits(NamedTuple):
    """In tokens; None where there is no end."""

    positions: int | None
    """Positions that were learned one by one (GPT-2). Rotary ones are computed, for any token."""
    context: int | None
    """How long a sequence rotary positions were made for: `max_position_embeddings`."""
    reach: int | None
    """How far back the most forgetful layer attends, its own token included: a sliding
    window; 0 for a recurrent layer."""
    forgetful: str
    """That layer, in words."""
    layers: int
    """That keep keys and values."""

    @property
    def longest(self) -> int | None:
        """Tokens of the longest sequence that it can take, or was made for."""
        return self.context if self.positions is None else self.positions

    def require_prompt(self, tokens: int, what: str = "the prompt", least: str = "") -> None:
        """For every prompt, whatever wrote it, and before anything attends to it.

        Args:
            tokens: how many it has.
            what: the name of what has them.
            least: put before their number.

        Raises:
            PromptTooLongError: not even one token of a response would have a position after it.
        """
        if self.longest is not None and tokens >= self.longest:
            raise PromptTooLongError(
                f"{what} has {least}{tokens:,} tokens, but the model takes {self.longest:,} "
                "positions, completion included — shorten it, or choose another model"
            )

    def require_positions(self, longest: int) -> None:
        """For every sequence that goes through the model.

        Raises:
            PolicyError: it ends behind the last position.
        """
        if self.positions is not None and longest > self.positions:
            raise PolicyError(
                f"prompt and answer have up to {longest} tokens, but this model has learned "
                f"{self.positions} positions — shorten prompt or answer, or choose another model"
            )

    def require_context(self, longest: int) -> None:
        """For sequences of strangers, which have no other end: every token takes memory.

        Raises:
            PolicyError: it is longer than what the model was made for.
        """
        if self.context is not None and longest > self.context:
            raise PolicyError(
                f"prompt and answer have up to {longest} tokens, but this model was made for "
                f"{self.context} — shorten prompt or answer, or choose another model"
            )

    def require_plain_attention(self, longest: int) -> None:
        """For what counts on every token attending to all tokens before it: the decode loop's
        cache, and rows that several completions share.

        Raises:
            PolicyError: a layer forgets some of them.
        """
        if self.reach is not None and longest > self.reach:
            raise PolicyError(
                f"prompt and answer have up to {longest} tokens, but {self.forgetful} — shorten "
                "prompt or answer, or choose another model"
            )


def limits_of(config: PretrainedConfig) -> Limits:
    """What a model's configuration says, of its decoder if it has other parts."""
    text = config.get_text_config()
    is_rotary = getattr(text, "rope_parameters", None) is not None
    longest: int | None = getattr(text, "max_position_embeddings", None)
    positions, context = (None, longest) if is_rotary else (longest, None)
    layers = DynamicCache(config=text).layers
    forgetful = [
        (*_reach_of(layer), index)
        for index, layer in enumerate(layers)
        if type(layer) is not DynamicLayer
    ]
    if not forgetful:
        return Limits(positions, context, None, "", len(layers))
    reach, words, index = min(forgetful)
    return Limits(positions, context, reach, f"layer {index} {words}", len(layers))


def _reach_of(layer: object) -> tuple[int, str]:
    window = getattr(layer, "sliding_window", None)
    if isinstance(window, int):
        return window, f"attends to the last {window} alone"
    return 0, f"is no attention layer ({type(layer).__name__})"

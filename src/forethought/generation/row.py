"""A request being answered: the tokens that were drawn for it, and what they are as text."""

from collections.abc import Sequence

from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.generation.sampling import ActionField
from forethought.models.encoding import Encoder
from forethought.models.token_text import GrowingText
from forethought.types import Completion, FinishReason


class Row:
    """A request and the tokens drawn for it so far."""

    def __init__(
        self,
        request: GenerationRequest,
        value: float | None,
        field: ActionField | None,
        encoder: Encoder,
    ) -> None:
        """
        Args:
            value: the critic's, of the prompt.
            field: fields of answers whose action is held to those that may be named.
            encoder: of the model that draws.
        """
        self.request = request
        self.value = value
        self.field = field
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.allowed: list[tuple[int, ...] | None] = []
        self._encoder = encoder
        self._text: GrowingText | None = None
        """Followed only where somebody reads along."""

    @property
    def has_nucleus(self) -> bool:
        """Whether each token is drawn from a nucleus."""
        return self.request.top_p < 1 and self.request.temperature > 0

    @property
    def is_held(self) -> bool:
        """Whether tokens are drawn from some alone."""
        return self.field is not None or self.has_nucleus

    def add(self, token: int, logprob: float) -> None:
        """Takes a token that was drawn."""
        self.ids.append(token)
        self.logprobs.append(logprob)
        if self.field is not None:
            self.field.write(token)

    def stop(self) -> int | None:
        """Where the first of the texts begins that end this answer, if it holds one."""
        if not self.request.stop:
            return None
        text = self._encoder.detokenize(self.ids).text
        places = [text.find(stop) for stop in self.request.stop]
        return min((place for place in places if place >= 0), default=None)

    def so_far(self) -> Completion:
        """What has been written, but for characters that are incomplete, or may yet turn out to
        begin a text that ends it."""
        text = self._text = self._text or self._encoder.growing_text()
        for token in self.ids[len(text.ids) :]:
            text.add(token)
        held = (
            size
            for stop in self.request.stop
            for size in range(1, len(stop))
            if text.text.endswith(stop[:size])
        )
        count = text.until(len(text.text) - max(held, default=0))
        offsets = [*text.offsets, len(text.text)]
        said = text.text[: offsets[count]]
        return self._completion(count, said, offsets[:count], FinishReason.LENGTH)

    def result(self) -> GenerationResult:
        """The answer, whose last token was drawn."""
        end = self.stop()
        is_stopped = end is not None or self.ids[-1] in self._encoder.stop_ids
        text, offsets = self._encoder.detokenize(self.ids)
        if end is not None:
            text, offsets = text[:end], tuple(min(offset, end) for offset in offsets)
        reason = FinishReason.STOP if is_stopped else FinishReason.LENGTH
        completion = self._completion(len(self.ids), text, offsets, reason)
        return GenerationResult(self.request.key, completion, self.value)

    def _completion(
        self, count: int, text: str, offsets: Sequence[int], reason: FinishReason
    ) -> Completion:
        """
        Args:
            count: its first so many tokens.
        """
        allowed = tuple(self.allowed[:count])
        return Completion(
            token_ids=tuple(self.ids[:count]),
            logprobs=tuple(self.logprobs[:count]),
            token_offsets=tuple(offsets),
            text=text,
            finish_reason=reason,
            temperature=self.request.temperature,
            allowed_ids=allowed if any(allowed) else (),
        )

"""The policy whose responses are written by engines elsewhere, token by token as our own are."""

from collections.abc import Callable, Sequence

from forethought.chat.engines import Engines, Published, Written
from forethought.chat.protocol import ChatRequest, Choice
from forethought.chat.sender import RealClock, RequestThreads
from forethought.configs.acting import GenerationConfig
from forethought.errors import PolicyError
from forethought.generation.contract import GenerationRequest, GenerationResult, Policy
from forethought.models.encoding import Encoder
from forethought.types import Completion, FinishReason, Message, Prompt


class RemotePolicy:
    """Satisfies `Policy`: ids go out as they are, and come back with their log-probs.

    What comes back is believed only where it says which prompt ids it was written to, and by which
    weights; it is never tokenized again. Values are the local critic's: no engine has one.
    """

    def __init__(
        self,
        encoder: Encoder,
        config: GenerationConfig,
        *,
        published: Published = tuple,
        critic: Policy | None = None,
        version: Callable[[], int] = lambda: 0,
        model: str | None = None,
    ) -> None:
        """
        Args:
            encoder: of the model that the engines serve.
            published: asked for every request, by any thread.
            critic: a policy that judges prompts (requests of no new tokens), if values are wanted.
            version: updates that the newest weights have seen.
            model: as `Engines` has it.
        """
        self._encoder = encoder
        self._published = published
        self._critic = critic
        self._version = version
        clock = RealClock()
        self._engines = Engines(config, clock, model=model)
        self._threads = RequestThreads(self._write, clock, most=config.concurrency)
        self._judged: list[GenerationRequest] = []
        """Requests of which the value alone is wanted."""

    @property
    def version(self) -> int:
        return self._version()

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        return self._encoder.encode(messages)

    def submit(self, request: GenerationRequest) -> None:
        """
        Raises:
            StorageError: new weights cannot be published.
        """
        if request.max_new_tokens == 0:
            self._judged.append(request)
            return
        self._published()  # New weights are written here and now, by this thread.
        self._threads.submit(request)

    def advance(self) -> list[GenerationResult]:
        """
        Raises:
            PolicyError: a request is refused or given up, or an engine wrote to another prompt
                than it was given; the other requests are dropped.
        """
        results = self._values([(r, None) for r in self._judged])
        self._judged = []
        written = self._threads.results(may_wait=not results)
        return results + self._values([(r, self._result(r, found)) for r, found in written])

    def close(self) -> None:
        """Ends the threads as soon as the requests under way are over."""
        self._threads.close()

    def _write(self, request: GenerationRequest) -> Written:
        prompt, is_sampled = request.prompt, request.temperature > 0
        has_images = bool(prompt.images)
        asked = ChatRequest(
            model="",
            messages=prompt.messages if has_images else (),
            prompt_ids=None if has_images else prompt.token_ids,
            max_tokens=request.max_new_tokens,
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed if is_sampled else None,
            stop=request.stop,
            logprobs=True,
            return_token_ids=True,
            action_choices=request.choices,
        )
        # Others end a response, and place images in one, unless they are told as our loop is.
        ruled_out = {str(i): -100.0 for i in self._encoder.placeholder_ids}
        return self._engines.write(
            asked,
            request.key,
            self._published,
            stop_token_ids=list(self._encoder.stop_ids),
            logit_bias=ruled_out or None,
            skip_special_tokens=True,
        )

    def _result(self, request: GenerationRequest, written: Written) -> GenerationResult:
        answer, engine, weights = written
        choice = answer.choices[0]
        _require_prompt(answer.prompt_ids, request.prompt.token_ids, engine)
        ids, logprobs = _require_tokens(choice, request, engine)
        text, offsets = self._encoder.detokenize(ids)
        if request.stop:  # Where the text ends is the engine's word: the ids go on.
            text = text[: len(choice.text)]
            offsets = tuple(min(offset, len(text)) for offset in offsets)
        completion = Completion(
            ids,
            logprobs,
            offsets,
            text,
            choice.finish_reason,
            request.temperature,
            choice.allowed_ids,
        )
        version = None if weights is None else weights.version
        return GenerationResult(request.key, completion, None, version)

    def _values(
        self, written: Sequence[tuple[GenerationRequest, GenerationResult | None]]
    ) -> list[GenerationResult]:
        """Results with the critic's values; without a critic, with none."""
        values: dict[int, float | None] = {}
        if self._critic is not None and written:
            for index, (request, _) in enumerate(written):
                self._critic.submit(
                    GenerationRequest(index, request.prompt, request.seed, 0, request.temperature)
                )
            while found := self._critic.advance():
                values |= {result.key: result.value for result in found}
        results: list[GenerationResult] = []
        for index, (request, result) in enumerate(written):
            empty = Completion((), (), (), "", FinishReason.LENGTH, request.temperature)
            found_ = result or GenerationResult(request.key, empty, None)
            value = values.get(index)
            results.append(GenerationResult(found_.key, found_.completion, value, found_.version))
        return results


def _require_prompt(read: tuple[int, ...] | None, given: tuple[int, ...], engine: str) -> None:
    if read == given:
        return
    if read is None:
        raise PolicyError(
            f"{engine}: it does not say which token ids it read — use an engine that knows "
            "return_token_ids (forethought serve; vLLM from 0.10.2)"
        )
    pairs = zip(read, given, strict=False)
    at = next((i for i, (got, gave) in enumerate(pairs) if got != gave), min(len(read), len(given)))
    raise PolicyError(
        f"{engine}: it read other token ids than it was given: {len(read)} instead of "
        f"{len(given)}, from position {at} on — serve the run's own model, tokenizer, processor "
        "and chat template; nothing was learned from it"
    )


def _require_tokens(
    choice: Choice, request: GenerationRequest, engine: str
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    ids, logprobs = choice.token_ids, choice.logprobs
    if not ids or logprobs is None or len(ids) != len(logprobs):
        got = (None if ids is None else len(ids), None if logprobs is None else len(logprobs))
        raise PolicyError(
            f"{engine}: got {got[0]} token ids with {got[1]} log-probs, expected equally many, and "
            "one at least — use an engine that gives both for every token"
        )
    if len(ids) > request.max_new_tokens:
        raise PolicyError(
            f"{engine}: got {len(ids)} tokens, expected {request.max_new_tokens} at most"
        )
    # Where an action field was held but never reached, there is nothing to say.
    has_nucleus = request.top_p < 1 and request.temperature > 0
    if has_nucleus and len(choice.allowed_ids) != len(ids):
        raise PolicyError(
            f"{engine}: it does not say what each token was drawn from, without which its "
            "log-probs cannot be scored — leave top_p at 1"
        )
    return ids, logprobs

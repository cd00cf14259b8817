"""Engines elsewhere that write in a policy's name: which one is asked, and with which weights."""

import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple

from tqdm import tqdm

from forethought.chat.http import Endpoint, NoReplyError, Reply, post
from forethought.chat.messages import ProtocolError
from forethought.chat.protocol import (
    ChatAnswer,
    ChatRequest,
    read_answer,
    read_error,
    read_models,
    write_request,
)
from forethought.chat.sender import Clock
from forethought.configs.acting import GenerationConfig
from forethought.errors import PolicyError, visible
from forethought.generation.published import Weights

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
MOST_REFUSALS = 5
"""Times that one request may be sent again because of what was answered, not of what broke."""
OURS = "forethought"
"""By which our own server says who it is."""
_BUSY = (408, 409, 425, 429)


Published = Callable[[], Sequence[Weights]]
"""Which weights may write now, the newest first; none: whatever the engines serve."""


class Written(NamedTuple):
    """An answer, and who gave it."""

    answer: ChatAnswer
    engine: str
    weights: Weights | None
    """Which wrote it; None where that was left to the engine."""


class Engine:
    """One replica, as its clients see it."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.lock = threading.Lock()
        """Held while it gets other weights."""
        self.base: str | None = None
        """The name of its model; None: it was not asked yet, or went away since."""
        self.is_ours = False
        self.loaded: list[Weights] = []
        """The newest last."""
        self.failures = 0
        """In a row."""
        self.paused_until_s = 0.0

    def send(self, path: str, body: bytes | None, timeout_s: float) -> Reply:
        """
        Args:
            path: from the root: `/v1/models`.
        """
        return post(Endpoint(self.url), body, path, timeout_s=timeout_s)

    def forget(self) -> None:
        """It may be another process by now, with other weights."""
        self.base, self.loaded = None, []


class Engines:
    """Replicas of one model. Used by any number of threads."""

    def __init__(self, config: GenerationConfig, clock: Clock, *, model: str | None = None) -> None:
        """
        Args:
            model: the name to ask for where weights are none of ours; by default the first that
                an engine lists.
        """
        self._config = config
        self._clock = clock
        self._model = model
        self._engines = [Engine(url) for url in config.engine]

    def write(
        self, request: ChatRequest, session: int, published: Published, **others: Any
    ) -> Written:
        """One answer, from whichever engine can give it.

        Args:
            request: its model is filled in.
            session: requests of one session go to one engine as long as it lives, so that what it
                remembers of their prompts is of use.
            published: asked before each attempt which weights may write: the newest is asked for,
                those after it are accepted as well. None at all: whatever is served.
            others: fields that our own server does not need.

        Raises:
            PolicyError: no engine answers for `patience_s`, one refuses the request as it is, or
                again and again has other weights than were loaded.
        """
        deadline_s, refusals, problem = self._clock.now() + self._config.patience_s, 0, ""
        while engine := self._choose(session, deadline_s):
            try:
                weights = published()
                model = self._prepare(engine, weights)
                found = self._ask(engine, model, request, others)
                written = self._accept(engine, found, published())
                if isinstance(written, Written):
                    engine.failures = 0
                    return written
                refusals += 1
                if refusals > MOST_REFUSALS:
                    raise PolicyError(
                        f"{engine.url}: {written}, {refusals} times in a row — restart it, then go "
                        "on with --resume"
                    )
                with engine.lock:
                    engine.forget()
                _say(f"{engine.url}: {written}; its weights are loaded again")
            except (NoReplyError, ProtocolError) as error:
                problem = str(error)
                self._pause(engine, problem)
        raise PolicyError(
            f"no engine answers ({', '.join(engine.url for engine in self._engines)}); the last "
            f"problem: {problem} — start one, then go on with --resume"
        )

    def _choose(self, session: int, deadline_s: float) -> Engine | None:
        """The engine of this session, or of those that are there, waiting for one if none is.

        Each session ranks all engines by a hash of both, so that one which is lost, or comes back,
        moves its own sessions alone. None: none came in time.
        """
        ranked = sorted(self._engines, key=lambda engine: _rank(engine.url, session))
        while True:
            now_s = self._clock.now()
            ready = next((engine for engine in ranked if engine.paused_until_s <= now_s), None)
            if ready is not None:
                return ready
            soonest_s = min(engine.paused_until_s for engine in ranked)
            if soonest_s > deadline_s:
                return None
            self._clock.wait(max(0.01, soonest_s - now_s))

    def _pause(self, engine: Engine, problem: str) -> None:
        """Leaves an engine alone for a while, longer each time."""
        with engine.lock:
            if engine.paused_until_s > self._clock.now():
                return  # Of requests that fail together the first one counts.
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**engine.failures)
            engine.failures += 1
            engine.paused_until_s = self._clock.now() + pause_s
            engine.forget()
        _say(f"{engine.url}: {problem}; it is asked again in {pause_s:g} s")

    def _prepare(self, engine: Engine, published: Sequence[Weights]) -> str:
        """Loads the newest weights into an engine that lacks them, and names the model to ask for.

        Raises:
            NoReplyError: it does not answer.
            PolicyError: it cannot load them.
        """
        with engine.lock:
            if engine.base is None:
                self._meet(engine)
            assert engine.base is not None
            if not published:
                return self._model or engine.base
            newest = published[0]
            if newest not in engine.loaded:
                if newest.is_adapter:
                    self._load_adapter(engine, newest)
                else:
                    body = {"model_path": newest.path, "weight_version": newest.name}
                    self._change(engine, "/update_weights_from_disk", body)
                    engine.loaded = [newest]
            return newest.name if newest.is_adapter else engine.base

    def _meet(self, engine: Engine) -> None:
        reply = engine.send("/v1/models", None, self._config.timeout_s)
        if reply.status != 200:
            raise NoReplyError(_complaint(reply))
        models = read_models(reply.body)
        if not models:
            raise PolicyError(f"{engine.url}: it serves no model")
        engine.base, owner = models[0]
        engine.is_ours = owner == OURS

    def _load_adapter(self, engine: Engine, newest: Weights) -> None:
        """The adapters before those that may still write are unloaded.

        Raises:
            PolicyError: they are on parts of the model where engines take none.
        """
        odd = [part for part in newest.components if part != "language_model"]
        if odd and not engine.is_ours:
            raise PolicyError(
                f"{engine.url}: it serves no adapters on the {' and the '.join(odd)} — train with "
                "--lora.components language_model, or serve with `forethought serve`"
            )
        body = {"lora_name": newest.name, "lora_path": newest.path}
        self._change(engine, "/v1/load_lora_adapter", body)
        engine.loaded.append(newest)
        while len(engine.loaded) > self._config.max_staleness + 1:
            old = engine.loaded.pop(0)
            # vLLM forgets the oldest by itself where it has no room: 404.
            engine.send(
                "/v1/unload_lora_adapter",
                json.dumps({"lora_name": old.name}).encode(),
                self._config.timeout_s,
            )

    def _change(self, engine: Engine, path: str, body: dict[str, str]) -> None:
        reply = engine.send(path, json.dumps(body).encode(), self._config.timeout_s)
        said = _complaint(reply)
        if reply.status == 200 or (reply.status == 400 and "already" in said):
            return
        if reply.status >= 500 or reply.status in _BUSY:
            raise NoReplyError(said)
        advice = f"it needs {body.get('lora_path') or body.get('model_path')} under this very path"
        if reply.status in (404, 405) and path.startswith("/update"):
            advice = "it exchanges adapters alone: train those (--lora.components language_model)"
        elif reply.status in (403, 404, 405):
            advice = "start it so that weights can be loaded: `forethought serve --weights-from "
            advice += "FOLDER`, or vLLM with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"
        raise PolicyError(f"{engine.url}: {said} — {advice}")

    def _ask(
        self, engine: Engine, model: str, request: ChatRequest, others: dict[str, Any]
    ) -> ChatAnswer | None:
        """None: it does not know the model.

        Raises:
            NoReplyError, ProtocolError: it may answer later.
            PolicyError: it will not.
        """
        if not engine.is_ours and request.action_choices is not None:
            raise PolicyError(
                f"{engine.url}: only `forethought serve` can hold responses to actions and tell "
                "what each token was drawn from — leave constrain_actions out"
            )
        seed = request.seed
        if seed is not None and not engine.is_ours:
            seed = _short(seed)
        named = replace(request, model=model, seed=seed)
        body = write_request(named, None if engine.is_ours else others)
        reply = engine.send(f"/v1{request.path}", body, self._config.timeout_s)
        if reply.status == 200:
            return read_answer(reply.body)
        if reply.status == 404:
            return None
        said = _complaint(reply)
        if reply.status >= 500 or reply.status in _BUSY:
            raise NoReplyError(said)
        raise PolicyError(f"{engine.url}: {said}")

    def _accept(
        self, engine: Engine, answer: ChatAnswer | None, published: Sequence[Weights]
    ) -> Written | str:
        """The answer with its weights, or why it does not count."""
        if answer is None:
            return "it does not know the model it was asked for"
        if not published:
            return Written(answer, engine.url, None)
        said = answer.model if published[0].is_adapter else answer.weight_version
        wrote = next((weights for weights in published if weights.name == said), None)
        if wrote is None:
            names = ", ".join(weights.name for weights in published)
            return f"weights {said} wrote the answer, expected {names}"
        return Written(answer, engine.url, wrote)


def _complaint(reply: Reply) -> str:
    said = " ".join(visible(read_error(reply.body))[:300].split())
    return f"status {reply.status}{f': {said}' if said else ''}"


def _rank(url: str, session: int) -> bytes:
    return blake2b(f"{url} {session}".encode(), digest_size=8).digest()


def _short(seed: int) -> int:
    """63 bits of all 128: what vLLM takes."""
    digest = blake2b(seed.to_bytes(16, "little"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _say(line: str) -> None:
    tqdm.write(f"engine {line}", file=sys.stderr)

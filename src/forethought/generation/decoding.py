"""The decode loop: continuous batching over a preallocated cache.

Rows are independent. A finished row leaves at once and the next request takes its
place; equal prompts are computed once and copied, and of a prompt that begins as one before
(a conversation's next one) only the rest is computed. Every answer's randomness comes from
its own seed, so an answer does not depend on what is generated beside it. Several models
may read the same rows, and agree on one distribution.
"""

from collections.abc import Sequence
from operator import itemgetter

import numpy as np
import torch
from torch import Tensor

from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.generation.prefill import Mix, PromptReader
from forethought.generation.prompt_rows import Prefilled
from forethought.generation.row import Row
from forethought.generation.sampling import ActionField, draw_tokens, nucleus
from forethought.generation.stepping import SteppedModel, copy_rows
from forethought.models.actor_critic import RULED_OUT, ActorCritic
from forethought.models.encoding import Encoder
from forethought.types import Completion, FinishReason


class DecodeLoop:
    """Answers requests with one fixed set of weights; make a new one after an update."""

    def __init__(
        self,
        actor_critic: ActorCritic,
        encoder: Encoder,
        *,
        slots: int,
        others: Sequence[ActorCritic] = (),
        mix: Mix = itemgetter(0),
    ) -> None:
        """
        Args:
            actor_critic: in evaluation mode (no dropout); its critic judges prompts.
            slots: how many requests are answered at a time.
            others: models of the same architecture that read along.
            mix: how all of them, in this order, give one distribution.
        """
        modules = (actor_critic, *others)
        self._models = [SteppedModel(module, encoder, rows=2 * slots) for module in modules]
        self._mix = mix
        self._encoder = encoder
        self._slots = slots
        self._device = actor_critic.model.device
        self._waiting = RequestQueue()
        self._rows: list[Row] = []
        # Rows 0 … slots-1 decode; the others keep prompts for whoever asks next.
        self.prompts = PromptReader(self._models, encoder, mix, range(slots, 2 * slots))
        self._lengths_B = np.zeros(slots, dtype=np.int64)
        self._lags_B = np.zeros(slots, dtype=np.int64)
        self._temperatures_B = torch.zeros(slots, device=self._device)
        self._uniforms_BT = torch.zeros(slots, 0, device=self._device)
        self._counts_B = np.zeros(slots, dtype=np.int64)
        self._logits_BV: Tensor | None = None

    @property
    def pending(self) -> int:
        """Requests not yet answered."""
        return len(self._waiting) + len(self._rows)

    def submit(self, request: GenerationRequest) -> None:
        self._waiting.put(request)

    def advance(self) -> list[GenerationResult]:
        """Decodes until at least one request is answered; empty if none is pending."""
        results: list[GenerationResult] = []
        while self.pending and not results:
            results = self.step()
        return results

    @torch.inference_mode()
    def step(self) -> list[GenerationResult]:
        """Admits what waits, as far as there is room, and draws one token for each row."""
        results = self._admit() if self._should_admit() else []
        return results + self._decode_one_token() if self._rows else results

    def under_way(self, key: int) -> Completion | None:
        """As `TokenwisePolicy.under_way`."""
        row = next((row for row in self._rows if row.request.key == key), None)
        return None if row is None else row.so_far()

    @torch.inference_mode()
    def cancel(self, key: int) -> None:
        """As `TokenwisePolicy.cancel`."""
        self._waiting.remove(key)
        self._retire([index for index, row in enumerate(self._rows) if row.request.key == key])

    def _should_admit(self) -> bool:
        """Prompts are taken in groups: a forward pass for one row costs almost as much
        as for eight. Few are left waiting only while most slots are busy."""
        free, waiting = self._slots - len(self._rows), len(self._waiting)
        is_group = min(free, waiting) >= max(1, self._slots // 8)
        return waiting > 0 and (is_group or 2 * free >= self._slots)

    # --- prompts -----------------------------------------------------------------------

    def _admit(self) -> list[GenerationResult]:
        first = len(self._rows)
        requests = self._waiting.take(self._slots - first)
        seated = [request for request in requests if request.max_new_tokens > 0]
        # The first row of those that begin with a prompt; the others copy.
        homes: dict[bytes, int] = {}
        for row, request in enumerate(seated, first):
            homes.setdefault(request.prompt.key, row)
        for model in self._models:
            model.ensure_capacity(max(map(room_for, requests)))
        written = self.prompts.read([request.prompt for request in requests], homes)
        copies: list[tuple[int, int]] = []
        for row, request in enumerate(seated, first):
            prefilled = self.prompts[request.prompt.key]
            if row not in written:
                copies.append((prefilled.row, row))
            self._seat(row, request, prefilled)
        if seated:
            copy_rows(self._models, copies, int(self._lengths_B[first : len(self._rows)].max()))
        return [self._valued(request) for request in requests if request.max_new_tokens == 0]

    def _valued(self, request: GenerationRequest) -> GenerationResult:
        empty = Completion((), (), (), "", FinishReason.LENGTH, request.temperature)
        return GenerationResult(request.key, empty, self.prompts[request.prompt.key].value)

    def _seat(self, row: int, request: GenerationRequest, prefilled: Prefilled) -> None:
        field = None
        if request.choices is not None:
            encoder = self._encoder
            field = ActionField(encoder.token_bytes(), request.choices, encoder.stop_ids)
        self._rows.append(Row(request, prefilled.value, field, self._encoder))
        self._lengths_B[row] = prefilled.length
        self._lags_B[row] = prefilled.position_lag
        self._counts_B[row] = 0
        self._temperatures_B[row] = request.temperature
        if self._uniforms_BT.shape[1] < request.max_new_tokens:
            wider = self._uniforms_BT.new_zeros(self._slots, request.max_new_tokens)
            wider[:, : self._uniforms_BT.shape[1]] = self._uniforms_BT
            self._uniforms_BT = wider
        randomness = np.random.Generator(np.random.Philox(key=request.seed))
        uniforms_T = torch.from_numpy(randomness.random(request.max_new_tokens, dtype=np.float32))
        self._uniforms_BT[row, : request.max_new_tokens] = uniforms_T.to(self._device)
        if self._logits_BV is None:
            self._logits_BV = prefilled.logits_V.new_zeros(self._slots, len(prefilled.logits_V))
        self._logits_BV[row] = prefilled.logits_V

    def _keep_written(self, finished: Sequence[int]) -> None:
        """Keeps completions with their prompts: the next turn begins with both."""
        moves: list[tuple[int, int]] = []
        for index in finished:
            row = self._rows[index]
            # The last token was drawn, and has not been through the model.
            kept = self.prompts.extend(row.request.prompt, row.ids[:-1])
            if kept is not None:
                moves.append((index, kept))
        copy_rows(self._models, moves, int(self._lengths_B[list(finished)].max()))

    # --- tokens ------------------------------------------------------------------------

    def _decode_one_token(self) -> list[GenerationResult]:
        """Draws a token for every row, retires the rows that are done, and puts the
        others through the model to learn what may follow."""
        assert self._logits_BV is not None
        active = len(self._rows)
        counts = torch.from_numpy(self._counts_B[:active]).to(self._device)
        drawn = draw_tokens(
            logits_BV=self._held(self._logits_BV[:active]),
            temperatures_B=self._temperatures_B[:active],
            uniforms_B=self._uniforms_BT[:active].gather(1, counts[:, None]).squeeze(1),
        )
        self._counts_B[:active] += 1
        finished: list[int] = []
        for index, (row, token, logprob) in enumerate(
            zip(self._rows, drawn.ids_B.tolist(), drawn.logprobs_B.tolist(), strict=True)
        ):
            row.add(token, logprob)
            is_over = token in self._encoder.stop_ids or row.stop() is not None
            if is_over or len(row.ids) == row.request.max_new_tokens:
                finished.append(index)
        results = [self._rows[index].result() for index in finished]
        if finished:
            self._keep_written(finished)
            self._retire(finished)
        if self._rows:
            self._forward_last_tokens()
        return results

    def _held(self, logits_BV: Tensor) -> Tensor:
        """The logits with the tokens ruled out that lead to no action, where rows are held."""
        held = [(index, row) for index, row in enumerate(self._rows) if row.is_held]
        if not held:
            return logits_BV
        logits_BV = logits_BV.clone()
        for index, row in held:
            allowed = None if row.field is None else row.field.allowed()
            self._keep(logits_BV[index], allowed)
            if row.has_nucleus:
                temperature, top_p = row.request.temperature, row.request.top_p
                allowed = nucleus(logits_BV[index], temperature=temperature, top_p=top_p)
                self._keep(logits_BV[index], allowed)
            row.allowed.append(allowed)
        return logits_BV

    def _keep(self, logits_V: Tensor, allowed: Sequence[int] | None) -> None:
        """Rules all other tokens out, in place; None: none."""
        if allowed is not None:
            ids = self._tensor(allowed)
            kept = logits_V[ids]
            logits_V.fill_(RULED_OUT)
            logits_V[ids] = kept

    def _retire(self, finished: Sequence[int]) -> None:
        """Fills the holes with the last rows, so that the active rows stay contiguous."""
        gone = set(finished)
        keep = len(self._rows) - len(gone)
        holes = [index for index in finished if index < keep]
        movers = [index for index in range(keep, len(self._rows)) if index not in gone]
        for hole, mover in zip(holes, movers, strict=True):
            self._rows[hole] = self._rows[mover]
        del self._rows[keep:]
        if not movers:
            return
        moves = list(zip(movers, holes, strict=True))
        copy_rows(self._models, moves, int(self._lengths_B[movers].max()))
        for array in (self._lengths_B, self._lags_B, self._counts_B):
            array[holes] = array[movers]
        # A request that is canceled leaves before the next token is drawn: logits move, too.
        assert self._logits_BV is not None
        for tensor in (self._temperatures_B, self._uniforms_BT, self._logits_BV):
            tensor[holes] = tensor[movers]

    def _forward_last_tokens(self) -> None:
        assert self._logits_BV is not None
        active = len(self._rows)
        ids_B1 = self._tensor([[row.ids[-1]] for row in self._rows])
        lengths_B, lags_B = self._lengths_B[:active], self._lags_B[:active]
        self._logits_BV[:active] = self._mix(
            [model.read_tokens(ids_B1, lengths_B, lags_B) for model in self._models]
        )
        self._lengths_B[:active] += 1

    def _tensor(self, numbers: Sequence[object]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=self._device)


def room_for(request: GenerationRequest) -> int:
    """Positions that a request may come to fill: its prompt and the longest answer."""
    return len(request.prompt.token_ids) + request.max_new_tokens


class RequestQueue:
    """Requests wait in rounds; in a round, those that need the most room go first.

    So rows of like length are answered together, which leaves little of the cache's window
    empty, and the longest answers are not begun last. Nobody is overtaken by a later round.
    """

    def __init__(self) -> None:
        self._round: list[GenerationRequest] = []
        self._next_round: list[GenerationRequest] = []

    def __len__(self) -> int:
        return len(self._round) + len(self._next_round)

    def put(self, request: GenerationRequest) -> None:
        self._next_round.append(request)

    def remove(self, key: int) -> None:
        """Forgets a request, if it is there."""
        self._round = [request for request in self._round if request.key != key]
        self._next_round = [request for request in self._next_round if request.key != key]

    def take(self, count: int) -> list[GenerationRequest]:
        """At most so many, in the order in which they should be answered."""
        taken: list[GenerationRequest] = []
        while len(taken) < count and len(self):
            if not self._round:
                self._round, self._next_round = sorted(self._next_round, key=room_for), []
            taken.append(self._round.pop())
        return taken

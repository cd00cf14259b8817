"""The policy that is a Hugging Face model: the tiny one, LLaVA, Qwen-VL, GPT-2 alike."""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from forethought.errors import PolicyError
from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.generation.decoding import DecodeLoop
from forethought.models.actor_critic import ActorCritic, Scores, ValueHead
from forethought.models.batching import Example, build_batch
from forethought.models.encoding import Encoder
from forethought.models.limits import Limits
from forethought.models.loading import LoadedModel, load_pretrained, settle
from forethought.models.lora import save_weights
from forethought.types import Completion, Message, Prompt

VALUE_HEAD_FILE = "value_head.safetensors"


class HuggingFacePolicy:
    """Generates and scores with the same weights; satisfies `Policy`."""

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        slots: int,
        value_head: ValueHead | None = None,
        version: int = 0,
    ) -> None:
        """
        Args:
            loaded: model and processor.
            slots: how many completions are generated at a time.
            value_head: the critic, for algorithms that have one.
            version: updates that the weights have already seen.
        """
        self.processor = loaded.processor
        self.adapter = loaded.adapter
        self.preferred_image_size = loaded.preferred_image_size
        self.module = ActorCritic(loaded.model, value_head)
        self.encoder = Encoder(loaded.model, loaded.processor)
        self._slots = slots
        self._version = version
        self._loop: DecodeLoop | None = None

    @property
    def version(self) -> int:
        return self._version

    @property
    def device(self) -> torch.device:
        return self.module.model.device

    def weights_changed(self) -> None:
        """To be called after every update: what was computed with old weights is dropped.

        Raises:
            RuntimeError: requests are still being answered with the old weights.
        """
        if self._loop is not None and self._loop.pending:
            raise RuntimeError(f"{self._loop.pending} requests are unanswered")
        self._version += 1
        self._loop = None

    @property
    def limits(self) -> Limits:
        """How long a sequence it can read."""
        return self.encoder.limits

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        return self.encoder.encode(messages)

    def require_room(self, prompt: Prompt, max_new_tokens: int) -> None:
        """For prompts of strangers, before they are submitted.

        Raises:
            PolicyError: with its answer, it is longer than what the model can read, or was
                made to read; or it has ids that are none of this model, or that stand for an
                image which is not there.
        """
        vocabulary = self.module.vocabulary
        unknown = [i for i in prompt.token_ids if not 0 <= i < vocabulary]
        if unknown:
            raise PolicyError(f"token id {unknown[0]} — expected 0 to {vocabulary - 1}")
        if not prompt.images and not set(self.encoder.placeholder_ids).isdisjoint(prompt.token_ids):
            raise PolicyError("the prompt's ids hold places for images — send its messages instead")
        longest = len(prompt.token_ids) + max_new_tokens
        self.encoder.limits.require_positions(longest)
        self.encoder.limits.require_context(longest)
        self.encoder.limits.require_plain_attention(longest)

    def submit(self, request: GenerationRequest) -> None:
        if self._loop is None:
            self.module.eval()
            self._loop = DecodeLoop(self.module, self.encoder, slots=self._slots)
        self._loop.submit(request)

    def advance(self) -> list[GenerationResult]:
        return [] if self._loop is None else self._loop.advance()

    def step(self) -> list[GenerationResult]:
        """As `TokenwisePolicy.step`."""
        return [] if self._loop is None else self._loop.step()

    def under_way(self, key: int) -> Completion | None:
        """As `TokenwisePolicy.under_way`."""
        return None if self._loop is None else self._loop.under_way(key)

    def cancel(self, key: int) -> None:
        """As `TokenwisePolicy.cancel`."""
        if self._loop is not None:
            self._loop.cancel(key)

    @torch.inference_mode()
    def score(self, examples: Sequence[Example], *, temperature: float) -> Scores:
        """Log-probs, entropies and values under the present weights, without gradient."""
        self.module.eval()
        batch = build_batch([[example] for example in examples], self.encoder).to(self.device)
        scores: Scores = self.module(batch, temperature=temperature)
        return scores

    def save(self, folder: Path) -> None:
        """Writes model, processor and critic so that `load_pretrained` reads them back."""
        save_weights(self.module.model, self.adapter, folder)
        self.processor.save_pretrained(folder)
        settle(folder)
        if self.module.value_head is not None:
            save_file(self.module.value_head.state_dict(), folder / VALUE_HEAD_FILE)


def load_value_head(folder: Path, hidden_size: int) -> ValueHead | None:
    """The critic saved beside a model, or None where there is none."""
    path = folder / VALUE_HEAD_FILE
    if not path.exists():
        return None
    head = ValueHead(hidden_size, generator=torch.Generator())
    # Critics saved before they had a scale speak in units of return.
    unscaled = dict(head.named_buffers())
    head.load_state_dict(unscaled | load_file(path))
    return head


def load_policy(folder: str, *, slots: int) -> HuggingFacePolicy:
    """A saved model to act with, critic included, on the GPU if there is one.

    Args:
        folder: written by `HuggingFacePolicy.save`, or any model's folder or hub id.
        slots: completions generated at a time.

    Raises:
        PolicyError: it cannot be loaded.
    """
    loaded = load_pretrained(folder)
    width = loaded.model.config.get_text_config().hidden_size
    policy = HuggingFacePolicy(loaded, slots=slots, value_head=load_value_head(Path(folder), width))
    policy.module.to("cuda" if torch.cuda.is_available() else "cpu")
    return policy

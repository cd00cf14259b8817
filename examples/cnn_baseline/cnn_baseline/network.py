"""A small network that sees a image, reads a few characters, and names an action.

RL4VLM's baseline CNN+RL. It answers through the same seam as a language model: its
vocabulary is the environment's actions, and every answer is one token long.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from cnn_baseline.image_task import open_image_task
from cnn_baseline.vision_tower import FrozenFeatures, Pooling, load_frozen
from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.errors import PolicyError
from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.rollouts.task import Task
from forethought.types import Completion, FinishReason, Message, Prompt

SMALLEST = 36
"""Pixels on a side, below which the convolutions have nothing left."""
CHARACTERS = 128
"""ASCII; 0 stands for nothing, and for any other character."""
CHARACTER_WIDTH = 16

_SHAPE = "cnn.json"
_WEIGHTS = "cnn.safetensors"
_TOWER = "vision_tower"


@dataclass(frozen=True)
class Shape:
    """What a network must know to be built."""

    actions: tuple[str, ...]
    height: int
    """Of the image, in pixels."""
    width: int
    text_length: int
    """Characters that are read; 0 where the environment says nothing."""
    hidden_size: int
    features: int | None = None
    """Numbers per image that a frozen tower gives; None: convolutions."""
    pooling: Pooling = "flatten"
    """Of that tower."""


class Inputs(NamedTuple):
    """Observations as tensors."""

    image: Tensor
    """uint8 [B, H, W, 3], or a frozen tower's features, fp32 [B, F]."""
    characters_BL: Tensor

    def rows(self, indices: Tensor) -> "Inputs":
        """Some of the observations."""
        return Inputs(self.image[indices], self.characters_BL[indices])


class ActionScores(NamedTuple):
    logits_BA: Tensor  # of every action
    values_B: Tensor  # discounted return that the critic expects


class ActionNetwork(nn.Module):
    """Features, two hidden layers, and a linear head each for actions and value."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.convolutions = None if shape.features is not None else _nature_convolutions()
        seen = shape.features
        if seen is None:
            assert self.convolutions is not None
            with torch.no_grad():
                seen = self.convolutions(torch.zeros(1, 3, shape.height, shape.width)).shape[1]
        self.characters = nn.Embedding(CHARACTERS, CHARACTER_WIDTH)
        read = shape.text_length * CHARACTER_WIDTH
        self.hidden = nn.Sequential(
            _linear(seen + read, shape.hidden_size, 2**0.5),
            nn.ReLU(),
            _linear(shape.hidden_size, shape.hidden_size, 2**0.5),
            nn.ReLU(),
        )
        # A small action head: at first every action is about as likely as any other.
        self.actions = _linear(shape.hidden_size, len(shape.actions), 0.01)
        self.value = _linear(shape.hidden_size, 1, 1.0)

    def forward(self, inputs: Inputs) -> ActionScores:
        """Scores [B, actions] and values [B]."""
        seen_BF = inputs.image
        if self.convolutions is not None:
            seen_BF = self.convolutions(seen_BF.permute(0, 3, 1, 2).float() / 255.0)
        read_BF = self.characters(inputs.characters_BL).flatten(1)
        hidden_BF = self.hidden(torch.cat([seen_BF, read_BF], dim=1))
        return ActionScores(self.actions(hidden_BF), self.value(hidden_BF).squeeze(1))


class CNNPolicy:
    """Chooses actions, and scores them; satisfies `Policy`."""

    def __init__(
        self, shape: Shape, module: ActionNetwork, frozen: FrozenFeatures | None, version: int = 0
    ) -> None:
        """
        Args:
            frozen: describes the images, where the network has no convolutions.
            version: updates that the weights have already seen.
        """
        self.shape = shape
        self.module = module
        self._frozen = frozen
        self._version = version
        self._waiting: list[GenerationRequest] = []
        self._answers = [json.dumps({"action": action}) for action in shape.actions]

    @property
    def version(self) -> int:
        return self._version

    @property
    def device(self) -> torch.device:
        return self.module.value.weight.device

    def to(self, device: torch.device) -> None:
        """Moves all weights."""
        self.module.to(device)
        if self._frozen is not None:
            self._frozen.to(device)

    def require_actions(self, actions: Sequence[str]) -> None:
        """Refuses a environment with other actions than those that were learned.

        Raises:
            PolicyError: naming both.
        """
        if tuple(actions) != self.shape.actions:
            raise PolicyError(
                f"this network chooses among {', '.join(self.shape.actions)} — the environment's "
                f"actions are {', '.join(actions)}: name the environment that it was trained in"
            )

    def weights_changed(self) -> None:
        """To be called after every iteration's updates."""
        self._version += 1

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """The last characters of the text, as many as are read; shorter ones are filled up.

        Raises:
            PolicyError: not one image of the size that the network was made for.
        """
        text = "".join(message.text for message in messages)
        length = self.shape.text_length
        ids = [ord(c) if ord(c) < CHARACTERS else 0 for c in text[-length:]] if length else []
        prompt = Prompt(tuple(messages), tuple(ids + [0] * (length - len(ids))))
        expected = (self.shape.height, self.shape.width, 3)
        if [image.shape for image in prompt.images] != [expected]:
            got = " and ".join(str(image.shape) for image in prompt.images) or "none"
            raise PolicyError(f"expected one image of shape {expected}, got {got}")
        return prompt

    def encode(self, prompts: Sequence[Prompt]) -> Inputs:
        """Observations as the network takes them; a frozen tower has then done its part."""
        images = [prompt.images[0] for prompt in prompts]
        if self._frozen is None:
            image = torch.from_numpy(np.stack(images)).to(self.device)
        else:
            image = self._frozen(images)
        ids = torch.tensor([prompt.token_ids for prompt in prompts], dtype=torch.int64)
        return Inputs(image, ids.reshape(len(prompts), self.shape.text_length).to(self.device))

    def submit(self, request: GenerationRequest) -> None:
        self._waiting.append(request)

    @torch.no_grad()
    def advance(self) -> list[GenerationResult]:
        """Answers everything that waits."""
        if not self._waiting:
            return []
        requests, self._waiting = self._waiting, []
        scores: ActionScores = self.module(self.encode([request.prompt for request in requests]))
        return [
            self._answer(*row)
            for row in zip(
                requests, scores.logits_BA.cpu(), scores.values_B.cpu().tolist(), strict=True
            )
        ]

    def _answer(
        self, request: GenerationRequest, logits_A: Tensor, value: float
    ) -> GenerationResult:
        temperature = request.temperature
        if request.max_new_tokens == 0:
            nothing = Completion((), (), (), "", FinishReason.LENGTH, temperature)
            return GenerationResult(request.key, nothing, value)
        logprobs_A = torch.log_softmax(logits_A / (temperature or 1.0), dim=0)
        index = int(logits_A.argmax())
        if temperature > 0:
            reached_A = np.cumsum(logprobs_A.double().exp().numpy())
            drawn = np.random.Generator(np.random.Philox(key=request.seed)).random()
            index = int(np.searchsorted(reached_A, drawn * reached_A[-1], side="right"))
        completion = Completion(
            token_ids=(index,),
            logprobs=(float(logprobs_A[index]),),
            token_offsets=(0,),
            text=self._answers[index],
            finish_reason=FinishReason.STOP,
            temperature=temperature,
        )
        return GenerationResult(request.key, completion, value)

    def save(self, folder: Path) -> None:
        """Writes weights and shape, so that `load_cnn` reads them back."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _SHAPE).write_text(json.dumps(asdict(self.shape)) + "\n", encoding="utf-8")
        save_file(self.module.state_dict(), folder / _WEIGHTS)
        if self._frozen is not None:
            self._frozen.save(folder / _TOWER)


def make_cnn(shape: Shape, frozen: FrozenFeatures | None, *, seed: int) -> CNNPolicy:
    """A network with random weights; the same seed gives the same ones."""
    # PyTorch initializes from the global generator: borrow it, and give it back.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return CNNPolicy(shape, ActionNetwork(shape), frozen)


def load_cnn(folder: Path, *, version: int = 0) -> CNNPolicy:
    """Reads what `CNNPolicy.save` wrote.

    Raises:
        PolicyError: the files do not belong together.
    """
    try:
        content: dict[str, Any] = json.loads((folder / _SHAPE).read_text(encoding="utf-8"))
        content["actions"] = tuple(content["actions"])
        shape = Shape(**content)
        module = ActionNetwork(shape)
        module.load_state_dict(load_file(folder / _WEIGHTS))
        frozen = None if shape.features is None else load_frozen(folder / _TOWER, shape.pooling)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise PolicyError(f"model {folder}: cannot be loaded: {reason}") from error
    return CNNPolicy(shape, module, frozen, version)


def open_cnn(
    folder: Path, environment: EnvironmentConfig, prompt: PromptConfig, *, slots: int
) -> tuple[CNNPolicy, Task]:
    """A trained network, and the environment as it sees it; it answers all at once, and reads no
    prompt.

    Raises:
        PolicyError: the files do not belong together, or the environment has other actions.
    """
    policy = load_cnn(folder)
    seen = open_image_task(environment, default_image_size=policy.shape.height)
    policy.require_actions(seen.actions)
    return policy, seen.task


def _nature_convolutions() -> nn.Sequential:
    """Those of Mnih et al. 2015."""
    layers: list[nn.Module] = []
    for inside, outside, kernel, stride in ((3, 32, 8, 4), (32, 64, 4, 2), (64, 64, 3, 1)):
        layer = nn.Conv2d(inside, outside, kernel, stride)
        nn.init.orthogonal_(layer.weight, 2**0.5)
        assert layer.bias is not None
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten())


def _linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer

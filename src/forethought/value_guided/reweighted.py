"""The policy that Q-SFT acts with: what the data do, weighed by what it is worth."""

import copy
import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from peft import PeftModel

from forethought.configs.acting import ActingConfig, SupportConfig
from forethought.errors import PolicyError
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.models.actor_critic import ActorCritic
from forethought.models.loading import BEHAVIOR, load_pretrained
from forethought.models.lora import save_weights
from forethought.value_guided.token_worth import weigh_by_likelihood
from forethought.value_guided.weighted import WeightedPolicy

LIKELIHOOD = "likelihood"
"""Folder of p_θ, beside π_φ's, inside a saved model."""
SETTINGS_FILE = "reweighted.json"


class Twin(NamedTuple):
    """A second model of the same architecture, with weights of its own."""

    module: ActorCritic
    adapter: PeftModel | None

    def save(self, folder: Path, like: HuggingFacePolicy) -> None:
        """Writes it as a model of its own, with the first one's processor."""
        save_weights(self.module.model, self.adapter, folder)
        like.processor.save_pretrained(folder)


def twin_of(policy: HuggingFacePolicy) -> Twin:
    """A copy of a policy's model; what is not trained is shared, not copied."""
    return Twin(*_copied((policy.module, policy.adapter), policy.module))


def twin_again(twin: Twin) -> Twin:
    """A copy of a twin, likewise."""
    return Twin(*_copied((twin.module, twin.adapter), twin.module))


def _copied(
    parts: tuple[ActorCritic, PeftModel | None], module: ActorCritic
) -> tuple[ActorCritic, PeftModel | None]:
    shared = {id(p): p for p in module.parameters() if not p.requires_grad}
    return copy.deepcopy(parts, shared)


def load_twin(folder: Path, like: HuggingFacePolicy) -> Twin:
    """What `Twin.save` wrote.

    Args:
        like: the first model; what neither of them trains is shared with it.

    Raises:
        PolicyError: nothing there, or a model of another architecture.
    """
    loaded = load_pretrained(str(folder), dtype=like.module.model.dtype)
    twin = Twin(ActorCritic(loaded.model, None), loaded.adapter)
    mine, theirs = dict(twin.module.named_parameters()), dict(like.module.named_parameters())
    if mine.keys() != theirs.keys() - {n for n in theirs if n.startswith("value_head.")}:
        raise PolicyError(f"{folder}: got another architecture than the behavior policy's")
    for name, parameter in mine.items():
        if not parameter.requires_grad:
            parameter.data = theirs[name].data
    twin.module.to(like.device)
    return twin


@dataclass(frozen=True)
class Settings:
    """What acting needs beside the weights: `reweighted.json`."""

    acting: ActingConfig
    support: SupportConfig
    dummy: int | None = None
    """The token that no data hold, where one was used (`residual_mass: token`)."""

    def save(self, folder: Path) -> None:
        """Writes them into a model's folder."""
        (folder / SETTINGS_FILE).write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Settings":
        """What `save` wrote.

        Raises:
            PolicyError: the file cannot be read, or is another one.
        """
        path = folder / SETTINGS_FILE
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            acting = ActingConfig(**content["acting"])
            support = SupportConfig(**content["support"])
            return cls(acting, support, content.get("dummy"))  # Not in runs of before 2026-11.
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PolicyError(f"{path}: got no settings of a Q-SFT policy ({error})") from error


def reweighted(
    behavior: HuggingFacePolicy, likelihood: Twin, settings: Settings, *, slots: int
) -> WeightedPolicy[ActingConfig]:
    """π_φ weighted by p_θ.

    Args:
        behavior: π_φ.
        likelihood: p_θ.
        slots: how many completions are generated at a time.
    """
    weigh = partial(weigh_by_likelihood, support=settings.support, dummy=settings.dummy)
    return WeightedPolicy(behavior, likelihood.module, settings.acting, weigh=weigh, slots=slots)


def is_reweighted(folder: Path) -> bool:
    """Whether a model's folder holds two models that act together."""
    return (folder / SETTINGS_FILE).is_file() and (folder / LIKELIHOOD).is_dir()


def load_reweighted(folder: Path, *, slots: int) -> WeightedPolicy[ActingConfig]:
    """What a Q-SFT run's checkpoint holds, to act with, on the GPU if there is one.

    Raises:
        PolicyError: it cannot be loaded.
    """
    settings = Settings.load(folder)
    behavior = load_policy(str(folder / BEHAVIOR), slots=slots)
    likelihood = load_twin(folder / LIKELIHOOD, behavior)
    return reweighted(behavior, likelihood, settings, slots=slots)

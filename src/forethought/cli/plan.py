"""What a run will do and need, before it does it (`--dry-run`)."""

import sys
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import torch

from forethought.algorithms.archer.config import ArcherConfig
from forethought.algorithms.cnn.config import CNNConfig
from forethought.algorithms.dpo.config import DPOConfig
from forethought.algorithms.ilql.config import ILQLConfig
from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.stored_steps import stored_steps
from forethought.cli.plan_cnn import check_cnn, plan_cnn
from forethought.cli.plan_dpo import dpo_work
from forethought.cli.plan_offline import offline_work
from forethought.configs.contract import LanguageConfig
from forethought.errors import ConfigError, PolicyError
from forethought.models.encoding import Encoder
from forethought.models.loading import LoadedModel, load_outline
from forethought.models.lora import add_lora
from forethought.models.projection import LARGEST
from forethought.models.tiny import IMAGE_SIZE, SIZES, make_tiny
from forethought.offline.stored_data import require_learnable, require_own, unlike
from forethought.rollouts.pictures import PictureEncoder
from forethought.rollouts.scripted import play, random_answer
from forethought.rollouts.store import read_shards
from forethought.rollouts.world import World, open_world
from forethought.runs.sources import model_source
from forethought.training.start import demonstrations, texts_of
from forethought.types import Step, Trajectory

_SAMPLE_STEPS = 64
"""Steps from which the length of prompts and answers is judged."""

_GIB = 2**30


class Lengths(NamedTuple):
    """Of one step, on average."""

    prompt: float
    """Tokens."""
    answer: float
    """Tokens."""
    pictures: float
    """Bytes."""
    packed: float
    """Bytes of the pictures as `offline/packing.py` keeps them."""

    @property
    def tokens(self) -> float:
        """Of prompt and answer."""
        return self.prompt + self.answer


class Model(NamedTuple):
    """What decides the memory of a model."""

    parameters: int
    trained: int
    layers: int
    hidden: int
    intermediate: int
    vocabulary: int
    cache_width: int
    """Numbers per token and layer in the cache of keys and values."""


def make_plan(config: Any) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: a world, model or data set that is not there: as training would.
    """
    if isinstance(config, CNNConfig):
        return plan_cnn(config)
    world, loaded = _outline(config)
    if loaded is None:
        size = SIZES[config.model]
        loaded = _adapted(make_tiny(texts_of(world, config), seed=config.seed, size=size), config)
    model = _measure(loaded)
    encoder = Encoder(loaded.model, loaded.processor)
    if isinstance(config, SFTConfig):
        work, lengths, steps = _sft_work(config, world, encoder)
    elif isinstance(config, QSFTConfig | ILQLConfig | ArcherConfig):
        work, sample, steps = offline_work(config)
        lengths = _lengths(sample, encoder)
    elif isinstance(config, DPOConfig):
        work, sample = dpo_work(config, world)
        lengths = _lengths(sample, encoder)._replace(answer=float(config.rollout.max_new_tokens))
        steps = config.rollout.steps_per_iteration
    else:
        work, lengths = _ppo_work(config, world, encoder)
        steps = config.rollout.steps_per_iteration
    size = f"model       {model.parameters:,} parameters, of which {model.trained:,} are trained"
    return ["plan", *work, size, *_memory(config, model, lengths, steps)]


def check(config: Any) -> None:
    """Refuses what can be refused before a run folder is touched.

    Raises:
        ForethoughtError: a world, option, model, part of a model or data set that is not
            there, or a model that cannot read what the world shows.
    """
    if isinstance(config, CNNConfig):
        check_cnn(config)
        return
    world, loaded = _outline(config)
    if loaded is not None:
        messages = world.prompter.messages(world.first_observation(0))
        try:
            Encoder(loaded.model, loaded.processor).encode(messages)
        except PolicyError as error:
            raise type(error)(f"{world.id}, first observation: {error}") from error


def _outline(config: LanguageConfig) -> tuple[World, LoadedModel | None]:
    """World and model as training would open them, the weights left out; no model where it
    is made from nothing. Data that training would refuse are refused."""
    loaded = None if config.model in SIZES else load_outline(model_source(config.model))
    size = IMAGE_SIZE if loaded is None else loaded.preferred_image_size
    world = open_world(config.environment, config.prompt, default_image_size=size)
    if isinstance(config, SFTConfig) and config.dagger_data is not None:
        require_own("dagger_data", config.dagger_data, world)
    require_learnable(config, world)
    if (note := unlike(config, world)) is not None:
        print(f"note: {note}", file=sys.stderr)
    return world, None if loaded is None else _adapted(loaded, config)


def _adapted(loaded: LoadedModel, config: LanguageConfig) -> LoadedModel:
    if not config.lora.components or loaded.adapter is not None:
        return loaded
    with torch.device("meta"):
        return loaded._replace(adapter=add_lora(loaded.model, config.lora, seed=config.seed))


def _measure(loaded: LoadedModel) -> Model:
    text: Any = loaded.model.config.get_text_config()
    heads = text.num_attention_heads
    head_width = getattr(text, "head_dim", None) or text.hidden_size // heads
    sizes = [(p.numel(), p.requires_grad) for p in loaded.model.parameters()]
    return Model(
        parameters=sum(size for size, _ in sizes),
        trained=sum(size for size, is_trained in sizes if is_trained),
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        intermediate=getattr(text, "intermediate_size", None) or 4 * text.hidden_size,
        vocabulary=text.vocab_size,
        cache_width=2 * (getattr(text, "num_key_value_heads", None) or heads) * head_width,
    )


def _sft_work(config: SFTConfig, world: World, encoder: Encoder) -> tuple[list[str], Lengths, int]:
    """Lines of the plan, a step's lengths, and how many steps are learned from."""
    if config.data is None:
        count = config.expert_steps + _corrections(config)
        sample = _steps(demonstrations(world, config))
    else:
        steps = stored_steps(config, Path(config.data))
        sample = [step for step in steps if step.action.is_valid]
        count = len(sample)
        if not sample:
            raise ConfigError(f"data: {config.data} holds no step with a valid answer")
    lengths = _lengths(sample[:_SAMPLE_STEPS], encoder)
    updates = config.updates(count)
    tokens = config.epochs * count * lengths.tokens
    work = [
        f"updates     {updates:,} of {config.batch_size} answers each, from {count:,} steps",
        f"tokens      at most {tokens:,.0f} trained on (per step {lengths.prompt:.0f} of prompt "
        f"and {lengths.answer:.0f} of answer)",
    ]
    return work, lengths, count


def _corrections(config: SFTConfig) -> int:
    """Steps that may be corrected: fewer where states are met again."""
    if config.dagger_data is None:
        return 0
    return sum(len(trajectory.steps) for trajectory in read_shards(Path(config.dagger_data)))


def _ppo_work(config: PPOConfig, world: World, encoder: Encoder) -> tuple[list[str], Lengths]:
    environment = world.factory()
    try:
        episodes = play(world.id, environment, world.prompter, random_answer(0), range(2**31))
        lengths = _lengths(_steps(episodes), encoder)
    finally:
        environment.close()
    rollout, iterations = config.rollout, config.iterations
    rounds = (
        f"{iterations} iterations of {rollout.steps_per_iteration}"
        if config.has_critic
        else f"at most {iterations} iterations of {rollout.steps_per_iteration} or more"
    )
    lengths = lengths._replace(answer=float(rollout.max_new_tokens))
    steps = iterations * rollout.steps_per_iteration
    generated = steps * lengths.answer
    trained = config.epochs * steps * lengths.tokens
    return [
        f"steps       {steps:,} of the environment: {rounds}, in {rollout.num_envs} at once",
        f"updates     {iterations * config.updates_per_iteration:,}: "
        f"{config.updates_per_iteration} per iteration, of {config.batch_size} steps each",
        f"tokens      at most {generated:,.0f} generated and {trained:,.0f} trained on (per step "
        f"{lengths.prompt:.0f} of prompt and up to {rollout.max_new_tokens} of answer)",
    ], lengths


def _steps(trajectories: Iterable[Trajectory]) -> list[Step]:
    return list(islice(chain.from_iterable(t.steps for t in trajectories), _SAMPLE_STEPS))


def _lengths(steps: Sequence[Step], encoder: Encoder) -> Lengths:
    prompts = [len(encoder.encode(step.prompt.messages).token_ids) for step in steps]
    answers = [len(encoder.tokenize_answer(step.completion.text)) for step in steps]
    images = [image for step in steps for image in step.prompt.images]
    pictures, packed = sum(image.nbytes for image in images), map(PictureEncoder(), images)
    totals = (sum(prompts), sum(answers), pictures, sum(map(len, packed)))
    return Lengths(*(total / len(steps) for total in totals))


def _memory(config: LanguageConfig, model: Model, lengths: Lengths, steps: int) -> list[str]:
    """Bytes, roughly. What a layer keeps for its backward pass is about ten numbers per unit
    of its width and three per unit of its perceptron; the vocabulary's logits, their
    log-probabilities and gradients are three more per word, for answer tokens alone and no more
    of them than a chunk has. What is learned from stays in memory, so many steps of it: the
    pictures of a data set packed."""
    bf16 = config.compute.precision == "bf16"
    frozen_size = 2 if bf16 and config.lora.components else 4
    weights = 4 * model.trained + frozen_size * (model.parameters - model.trained)
    batch_tokens = config.batch_size * lengths.tokens
    tokens = min(config.compute.micro_batch_tokens, batch_tokens)
    layer = 10 * model.hidden + 3 * model.intermediate
    kept = model.layers * layer
    if config.compute.gradient_checkpointing:
        kept = layer + model.layers * model.hidden
    logits = min(tokens * lengths.answer / lengths.tokens * model.vocabulary, LARGEST)
    activations = tokens * kept * (2 if bf16 else 4) + 3 * 4 * logits
    parts = {
        "weights": weights,
        "gradients": 4 * model.trained,
        "Adam": 8 * model.trained,
        "activations": activations,
    }
    if isinstance(config, PPOConfig | DPOConfig):
        cached = config.rollout.num_envs * lengths.tokens * model.layers * model.cache_width * 4
        parts["cache of generation"] = cached
    if isinstance(config, QSFTConfig):
        parts["behavior and target"] = 2 * 4 * model.trained
    if isinstance(config, ILQLConfig | ArcherConfig):
        # Two Q heads with a slow copy each; of what learns, gradient and Adam's moments, too.
        head = 2 * model.hidden * (model.hidden + model.vocabulary)
        parts["critic" if isinstance(config, ArcherConfig) else "behavior"] = 4 * model.trained
        parts["heads"] = 4 * head * (2 * 4 + 2)
    if isinstance(config, DPOConfig) and not config.lora.components:
        parts["reference"] = 4 * model.trained
    if lengths.pictures:
        is_online = isinstance(config, PPOConfig | DPOConfig)
        parts["pictures"] = steps * (lengths.pictures if is_online else lengths.packed)
    total = sum(parts.values())
    shares = ", ".join(f"{name} {_size(value)}" for name, value in parts.items())
    return [
        f"memory      about {_size(total)}, an estimate: {shares}",
        "            (the libraries take about 0.5 GiB more)",
    ]


def _size(count: float) -> str:
    return f"{count / _GIB:.2f} GiB" if count >= _GIB / 100 else f"{count / 2**20:.1f} MiB"

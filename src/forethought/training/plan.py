"""What a run will do and need, before it does it (`--dry-run`): what all plans share."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from forethought.configs.contract import LanguageConfig, OfflineConfig, RolloutLanguageConfig
from forethought.errors import ConfigError, PolicyError
from forethought.generation.attention import attend
from forethought.models.batching import Example, TokenBatch, build_batch
from forethought.models.encoding import Encoder
from forethought.models.loading import LoadedModel, load_outline
from forethought.models.tiny import IMAGE_SIZE, SIZES, make_tiny
from forethought.offline.dataset import require_learnable, stored, stored_earned, unlike
from forethought.offline.rows import written_rows
from forethought.rollouts.scripted import play, random_response
from forethought.rollouts.shard_files import ImageEncoder
from forethought.rollouts.task import Task, open_task
from forethought.runs.checkpoints import model_source
from forethought.training.cost import (
    Speed,
    UpdateCost,
    fastest,
    seconds_of,
    speed_of,
    token_step,
    update_cost,
)
from forethought.training.phases import Stage
from forethought.training.start import surroundings_of, with_adapters
from forethought.types import Prompt, Step, Trajectory

SAMPLE_STEPS = 64
"""Steps from which the length of prompts and responses is estimated."""

SAMPLE_EPISODES = 16
"""Stored episodes from which the number and the length of their rows are estimated."""

_GIB = 2**30


class Lengths(NamedTuple):
    """Lengths of one step, on average."""

    prompt: float
    """Tokens."""
    completion: float
    """Tokens."""
    images: float
    """Bytes."""
    packed: float
    """Bytes of the images as `offline/rows.py` keeps them."""
    sample: Prompt
    """One of about that length."""

    @property
    def tokens(self) -> float:
        """Tokens of prompt and response."""
        return self.prompt + self.completion


class ModelSize(NamedTuple):
    """What decides the memory of a model."""

    parameters: int
    trained: int
    layers: int
    hidden: int
    vocabulary: int
    cache_width: int
    """Numbers per token and layer in the cache of keys and values."""
    loaded: LoadedModel
    """The model without weights."""
    encoder: Encoder


class Outline(NamedTuple):
    """What a run will have, its weights left out."""

    task: Task
    encoder: Encoder
    model: ModelSize


def open_outline(config: LanguageConfig) -> Outline:
    """Environment and model as training would open them.

    Raises:
        ForethoughtError: an environment, model or data set that is not there: as training would.
    """
    task, loaded = _open(config)
    if loaded is None:
        size = SIZES[config.model]
        made = make_tiny(*surroundings_of(task, config), seed=config.seed, size=size)
        loaded = _adapted(made, config)
    encoder = Encoder(loaded.model, loaded.processor)
    return Outline(task, encoder, _measure(loaded, encoder))


def check_language(config: LanguageConfig) -> Task:
    """Refuses what can be refused before a run folder is touched.

    Returns:
        The environment, in which nothing has been played.

    Raises:
        ForethoughtError: an environment, option, model, part of a model or data set that is not
            there, or a model that cannot read what the environment shows.
    """
    task, loaded = _open(config)
    if loaded is not None:
        messages = task.prompter.messages(task.first_observation(0))
        try:
            Encoder(loaded.model, loaded.processor).encode(messages)
        except PolicyError as error:
            raise type(error)(f"{task.id}, first observation: {error}") from error
    return task


def plan_lines(
    config: LanguageConfig,
    model: ModelSize,
    lengths: Lengths,
    work: Sequence[str],
    more_memory: Mapping[str, float],
    more_time: Callable[[Speed], str] | None = None,
    *,
    rows: int | None = None,
) -> list[str]:
    """The whole plan; how long things take, which depends on the machine, goes to stderr.

    Args:
        lengths: of the rows that are learned from, of a step each as a rule.
        work: what the algorithm will do, one line each.
        more_memory: bytes of what it keeps beside the model that is trained, by name.
        more_time: what to say of time beside that of an optimizer step.
        rows: of an optimizer step; by default as many as the size of a batch.
    """
    rows = config.batch_size if rows is None else rows
    count = config.compute.micro_batch_tokens // max(1, round(lengths.tokens))
    count = max(1, min(count, rows))
    micro_batches = -(-rows // count)
    cost = _cost(config, model, lengths, count, micro_batches)
    speed = speed_of(cost, micro_batches=micro_batches)
    parts = {
        "weights": cost.weights,
        "Adam": cost.moments,
        "gradients and activations": cost.peak,
        **more_memory,
    }
    shares = ", ".join(f"{name} {_size(value)}" for name, value in parts.items())
    # Of a GPU the matrix products alone are counted.
    bound = "at least" if torch.cuda.is_available() else "about"
    said = f"an optimizer step takes {bound} {speed.update:.2g} s here"
    if more_time is not None:
        said += f", {more_time(speed)}"
    print(f"note: {said}; less where steps share their prompt", file=sys.stderr)
    return [
        "plan",
        *work,
        f"model       {model.parameters:,} parameters, of which {model.trained:,} are trained",
        f"memory      about {_size(sum(parts.values()))}, an estimate: {shares}",
        "            (the libraries take about 0.5 GiB more)",
        f"arithmetic  {micro_batches * cost.flops / 1e9:,.0f} GFLOP per optimizer step, of "
        f"{micro_batches} forward and backward passes",
    ]


def plan_offline(
    config: OfflineConfig,
    stages: Callable[[int], Sequence[Stage[Any]]],
    more_memory: Callable[[ModelSize], Mapping[str, float]],
    more_work: Sequence[str] = (),
    *,
    passes: int,
) -> list[str]:
    """The whole plan of an algorithm that learns in phases from stored episodes.

    Args:
        stages: from the number of episodes.
        more_memory: bytes of what it keeps beside the model that is trained, by name; images
            apart.
        more_work: what it will do beside its updates, one line each.
        passes: how often its targets take a row through a model, forwards alone.

    Raises:
        ForethoughtError: as training would.
    """
    _, encoder, model = open_outline(config)
    path = Path(config.data)
    steps = [len(earned.rewards) for earned in stored_earned(path)]
    if not steps:
        raise ConfigError(f"data: {path} holds no episode with a step")
    phases = ", then ".join(f"{stage.updates:,} of {stage.phase}" for stage in stages(len(steps)))
    work = [
        f"episodes    {len(steps):,}, of {sum(steps) / len(steps):.1f} steps on average",
        f"updates     {phases}; of {config.batch_size} episodes each",
        *more_work,
    ]
    sample = list(islice(stored(path), SAMPLE_EPISODES))
    lengths = lengths_of(first_steps(sample), encoder)
    memory = {**more_memory(model), **image_memory(lengths.packed, sum(steps))}
    sampled = written_rows([step for episode in sample for step in episode.steps], encoder)
    tokens = sum(row.length for row in sampled) / len(sampled)
    rows = max(1, round(config.batch_size * len(sampled) / len(sample)))

    def time(speed: Speed) -> str:
        seconds = speed.update + passes * rows * speed.forward
        return f"one that learns values at least {seconds:.2g} s, heads and targets apart"

    row = lengths._replace(completion=max(1.0, tokens - lengths.prompt))
    return plan_lines(config, model, row, work, memory, time, rows=rows)


def head_memory(model: ModelSize) -> float:
    """Bytes of two Q heads with a target network each; of what learns, gradient and Adam's
    moments, too."""
    return 4 * 2 * model.hidden * (model.hidden + model.vocabulary) * (2 * 4 + 2)


def rollout_memory(
    config: RolloutLanguageConfig, model: ModelSize, lengths: Lengths
) -> dict[str, float]:
    """Bytes of what a run that plays keeps beside its model: the cache of generation."""
    numbers = config.rollout.num_envs * lengths.tokens * model.layers * model.cache_width
    return {"cache of generation": 4 * numbers}


def rollout_seconds(
    config: RolloutLanguageConfig, model: ModelSize, lengths: Lengths, speed: Speed
) -> float:
    """Seconds that the model takes to write all responses of an iteration, prompts included."""
    rows, steps = config.rollout.num_envs, config.rollout.steps_per_iteration
    length, width = round(lengths.tokens), model.cache_width // 2
    query, cache = torch.zeros(rows, 1, 1, width), torch.zeros(rows, 1, length, width)
    mask = torch.zeros(rows, 1, 1, length)
    attention = fastest(lambda: attend(nn.Identity(), query, cache, cache, mask))
    token = seconds_of(token_step(model.loaded, rows)) + model.layers * attention
    prompts = steps * speed.forward * lengths.prompt / lengths.tokens
    return prompts + steps / rows * lengths.completion * token


def image_memory(bytes_per_step: float, steps: int) -> dict[str, float]:
    """Bytes of the images of the steps that are learned from, where there are any."""
    return {"images": steps * bytes_per_step} if bytes_per_step else {}


def first_steps(trajectories: Iterable[Trajectory]) -> list[Step]:
    """So many that lengths can be estimated from them."""
    return list(islice(chain.from_iterable(t.steps for t in trajectories), SAMPLE_STEPS))


def random_steps(task: Task) -> list[Step]:
    """The same, of episodes that the random policy plays."""
    environment = task.factory()
    try:
        return first_steps(
            play(task.id, environment, task.prompter, random_response(0), range(2**31))
        )
    finally:
        environment.close()


def lengths_of(steps: Sequence[Step], encoder: Encoder) -> Lengths:
    """The mean over some steps."""
    encoded = [encoder.encode(step.prompt.messages) for step in steps]
    prompts = [len(prompt.token_ids) for prompt in encoded]
    mean = sum(prompts) / len(prompts)
    sample = min(encoded, key=lambda prompt: abs(len(prompt.token_ids) - mean))
    completions = [len(encoder.tokenize_response(step.completion.text)) for step in steps]
    images = [image for step in steps for image in step.prompt.images]
    images, packed = sum(image.nbytes for image in images), map(ImageEncoder(), images)
    return Lengths(
        prompt=sum(prompts) / len(steps),
        completion=sum(completions) / len(steps),
        images=images / len(steps),
        packed=sum(map(len, packed)) / len(steps),
        sample=sample,
    )


def _open(config: LanguageConfig) -> tuple[Task, LoadedModel | None]:
    """Task and model as training would open them, the weights left out; no model where it
    is randomly initialized. Data that training would refuse are refused."""
    loaded = None if config.model in SIZES else load_outline(model_source(config.model))
    size = IMAGE_SIZE if loaded is None else loaded.preferred_image_size
    task = open_task(config.environment, config.prompt, default_image_size=size)
    require_learnable(config, task)
    if (note := unlike(config, task)) is not None:
        print(f"note: {note}", file=sys.stderr)
    return task, None if loaded is None else _adapted(loaded, config)


def _adapted(loaded: LoadedModel, config: LanguageConfig) -> LoadedModel:
    with torch.device("meta"):
        return with_adapters(loaded, config.lora, config.seed)


def _measure(loaded: LoadedModel, encoder: Encoder) -> ModelSize:
    text: Any = loaded.model.config.get_text_config()
    heads = text.num_attention_heads
    head_width = getattr(text, "head_dim", None) or text.hidden_size // heads
    sizes = [(p.numel(), p.requires_grad) for p in loaded.model.parameters()]
    return ModelSize(
        parameters=sum(size for size, _ in sizes),
        trained=sum(size for size, is_trained in sizes if is_trained),
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        vocabulary=text.vocab_size,
        cache_width=2 * (getattr(text, "num_key_value_heads", None) or heads) * head_width,
        loaded=loaded,
        encoder=encoder,
    )


def _cost(
    config: LanguageConfig, model: ModelSize, lengths: Lengths, count: int, micro_batches: int
) -> UpdateCost:
    """Of an optimizer step of so many micro-batches of so many steps."""
    compute = config.compute
    if compute.precision == "bf16" and config.lora.components:
        for parameter in model.loaded.model.parameters():
            if not parameter.requires_grad:
                parameter.data = parameter.data.to(torch.bfloat16)
    return update_cost(
        model.loaded,
        _micro_batch(model, lengths, count),
        critic=False,
        precision=compute.precision,
        recomputes=compute.gradient_checkpointing,
        micro_batches=micro_batches,
    )


def _micro_batch(model: ModelSize, lengths: Lengths, count: int) -> TokenBatch:
    """So many steps of about the mean length."""
    encoder = model.encoder
    no_image = set(encoder.placeholder_ids)
    token = next(i for i in range(len(encoder.tokenizer)) if i not in no_image)
    example = Example(lengths.sample, (token,) * max(1, round(lengths.completion)))
    return build_batch([[example] for _ in range(count)], encoder)


def _size(count: float) -> str:
    return f"{count / _GIB:.2f} GiB" if count >= _GIB / 100 else f"{count / 2**20:.1f} MiB"

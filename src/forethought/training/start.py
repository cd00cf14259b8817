"""What a run starts with: the environment, and a policy randomly initialized or loaded."""

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from forethought.configs.contract import LanguageConfig, RolloutLanguageConfig
from forethought.configs.parts import LoraConfig
from forethought.environments.vector import Runner
from forethought.generation.contract import Policy
from forethought.generation.huggingface import HuggingFacePolicy, load_value_head
from forethought.models.actor_critic import ValueHead
from forethought.models.loading import LoadedModel, load_pretrained
from forethought.models.lora import add_lora
from forethought.models.tiny import (
    IMAGE_SIZE,
    SIZES,
    Color,
    background_of,
    tiny_with,
    train_tokenizer,
    wrap_tokenizer,
)
from forethought.offline.dataset import require_learnable
from forethought.rollouts.collector import Collector
from forethought.rollouts.scripted import Respond, expert_response, play
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.store import read_shards
from forethought.rollouts.task import Task, open_task
from forethought.runs.checkpoints import MODEL_DIR, model_source
from forethought.training.run import Run
from forethought.types import Image, Trajectory

TOKENIZER_EPISODES = 300
"""Expert episodes on whose text the tiny model's tokenizer is trained, and on whose first images
its background is taken."""

STORED_TOKENIZER_EPISODES = 1_000
"""The same of stored episodes, whose players say more than the expert does."""

TOKENIZER_CHARACTERS = 1 << 14
"""Limit of one text: a tiny model has no positions for a longer one."""


class Surroundings(NamedTuple):
    """What a randomly initialized model is prepared for."""

    texts: list[str]
    images: list[Image]


class Start(NamedTuple):
    """Task and policy of a run that begins or goes on."""

    task: Task
    policy: HuggingFacePolicy


def start(config: LanguageConfig, run: Run, *, slots: int, critic: bool) -> Start:
    """Opens the environment and makes the policy: from the run's checkpoint where it goes on.

    Args:
        slots: completions generated at a time by this process.
        critic: whether the policy judges states, too.

    Raises:
        ForethoughtError: an environment, option, model or checkpoint that is not there.
    """
    # Dropout draws from torch's own generator, which checkpoints hold from here on.
    torch.manual_seed((config.seed << 16) + run.process)
    folder = str(run.checkpoint / MODEL_DIR) if run.checkpoint else model_source(config.model)
    if folder in SIZES:
        task = open_task(config.environment, config.prompt, default_image_size=IMAGE_SIZE)
        tokenizer, background = prepare_tiny(task, config, run)
        loaded = tiny_with(tokenizer, background, seed=config.seed, size=SIZES[folder])
    else:
        # Frozen weights may be coarse; trained ones are kept in fp32.
        halved = config.compute.precision == "bf16" and bool(config.lora.components)
        loaded = load_pretrained(folder, dtype=torch.bfloat16 if halved else torch.float32)
        task = open_task(
            config.environment, config.prompt, default_image_size=loaded.preferred_image_size
        )
    require_learnable(config, task)
    if run.checkpoint is None and run.process == 0:
        proof = task.prove()
        if proof is not None:
            print(proof, file=sys.stderr)
    loaded = with_adapters(loaded, config.lora, config.seed)
    if config.compute.gradient_checkpointing:
        loaded.model.activation_checkpointing_enable({"use_reentrant": False})
    head = None
    if critic:
        width = loaded.model.config.get_text_config().hidden_size
        fresh = ValueHead(width, generator=torch.Generator().manual_seed(config.seed))
        head = load_value_head(Path(folder), width) or fresh
    policy = HuggingFacePolicy(loaded, slots=slots, value_head=head, version=run.steps_done)
    policy.module.to(run.accelerator.device)
    return Start(task, policy)


def demonstrations(task: Task, config: LanguageConfig) -> Iterable[Trajectory]:
    """The expert's episodes, without end."""
    task.require_expert()
    return expert_episodes(task, config, expert_response(config.prompt.format))


def surroundings_of(task: Task, config: LanguageConfig) -> Surroundings:
    """What is said and seen in this environment, for a randomly initialized model.

    The texts are its vocabulary, if it has one, prompts and responses, those of the data where
    there are any, otherwise of the expert; the images are those that episodes begin with.

    Raises:
        StorageError: nothing is stored there, or it is damaged.
    """
    if config.data is None:
        episodes = islice(demonstrations(task, config), TOKENIZER_EPISODES)
    else:
        episodes = islice(read_shards(Path(config.data)), STORED_TOKENIZER_EPISODES)
    # Twice: what occurs once is no token.
    texts = ["".join(task.vocabulary)] * 2 if task.vocabulary else []
    images: list[Image] = []
    for trajectory in episodes:
        images += trajectory.steps[0].prompt.images
        for step in trajectory.steps:
            texts += [message.text[:TOKENIZER_CHARACTERS] for message in step.prompt.messages]
            texts.append(step.completion.text[:TOKENIZER_CHARACTERS])
    return Surroundings(texts, images)


def prepare_tiny(
    task: Task, config: LanguageConfig, run: Run
) -> tuple[PreTrainedTokenizerFast, Color]:
    """Tokenizer and background, made by the first process: the others would play the same episodes
    to make the same."""
    own: list[tuple[str, Color]] = []
    if run.process == 0:
        texts, images = surroundings_of(task, config)
        own.append((train_tokenizer(texts).backend_tokenizer.to_str(), background_of(images)))
    [(text, background)] = run.gather(own)
    return wrap_tokenizer(Tokenizer.from_str(text)), background


def expert_episodes(task: Task, config: LanguageConfig, respond: Respond) -> Iterator[Trajectory]:
    """Episodes on the seeds of demonstrations, without end."""
    seeds = (episode_seed(Split.DEMONSTRATION, config.seed, index) for index in range(2**31))
    return play(task.id, task.factory(), task.prompter, respond, seeds)


def training_collector(
    task: Task, runner: Runner, policy: Policy, config: RolloutLanguageConfig
) -> partial[Collector]:
    """A collector of training episodes; how these are grouped and counted is left to say."""
    return partial(
        Collector,
        environment_id=task.id,
        runner=runner,
        policy=policy,
        prompter=task.prompter,
        sampling=config.rollout.sampling,
        on_invalid=config.rollout.on_invalid,
        split=Split.TRAINING,
        run_seed=config.seed,
    )


def with_adapters(loaded: LoadedModel, config: LoraConfig, seed: int) -> LoadedModel:
    """The model with adapters where the settings name parts and it has none yet."""
    if not config.components or loaded.adapter is not None:
        return loaded
    return loaded._replace(adapter=add_lora(loaded.model, config, seed=seed))

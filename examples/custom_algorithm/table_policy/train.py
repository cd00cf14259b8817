"""The loop, and the policy that it trains."""

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.errors import ConfigError
from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.rollouts.seeding import Split, episode_seed
from forethought.rollouts.task import Task, open_task
from forethought.training.run import Existing, open_run
from forethought.types import Completion, FinishReason, Message, Metric, Prompt
from table_policy.config import TableConfig

WEIGHTS = "table.safetensors"


class TablePolicy:
    """Action probabilities by prompt; keeps the promises of `generation.contract.Policy`."""

    def __init__(self, actions: Sequence[str], rows: int) -> None:
        self.module = nn.Embedding(rows, len(actions))
        nn.init.zeros_(self.module.weight)
        self.actions = tuple(actions)
        self.version = 0
        self._waiting: list[GenerationRequest] = []

    def logits(self, prompt: Prompt) -> Tensor:
        """Of one prompt, one number per action."""
        row = zlib.crc32(prompt.messages[-1].text.encode()) % self.module.num_embeddings
        return self.module.weight[row]

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        return Prompt(tuple(messages), token_ids=(0,))

    def submit(self, request: GenerationRequest) -> None:
        self._waiting.append(request)

    @torch.no_grad()
    def advance(self) -> list[GenerationResult]:
        waiting, self._waiting = self._waiting, []
        return [self._answer(request) for request in waiting]

    def _answer(self, request: GenerationRequest) -> GenerationResult:
        logits_A = self.logits(request.prompt)
        index, temperature = int(logits_A.argmax()), request.temperature
        logprobs_A = torch.log_softmax(logits_A / (temperature or 1.0), dim=0)
        if temperature > 0:
            rng = np.random.Generator(np.random.Philox(key=request.seed))
            probabilities_A = logprobs_A.double().exp().numpy()
            index = int(rng.choice(len(self.actions), p=probabilities_A / probabilities_A.sum()))
        text = f'{{"action": "{self.actions[index]}"}}'
        logprob = float(logprobs_A[index])
        completion = Completion((index,), (logprob,), (0,), text, FinishReason.STOP, temperature)
        return GenerationResult(request.key, completion, None)

    def save(self, folder: Path) -> None:
        """Writes the table."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self.module.state_dict(), folder / WEIGHTS)


def train_table(config: TableConfig, *, existing: Existing = "refuse") -> Path:
    """Trains, and returns the run folder."""
    with open_run(config, existing) as run:
        task = open_task(config.environment, config.prompt, default_image_size=None)
        policy = TablePolicy(actions_of(task), config.rows)
        updater = run.make_updater(policy, config.optimizer, total_steps=config.iterations)
        for iteration in range(run.steps_done, config.iterations):
            prompts, actions_B, rewards_B = play(policy, task, config, iteration)
            advantages_B = rewards_B - rewards_B.mean()

            def loss(prompts=prompts, actions_B=actions_B, advantages_B=advantages_B) -> Tensor:
                logits_BA = torch.stack([policy.logits(prompt) for prompt in prompts])
                logprobs_B = torch.log_softmax(logits_BA, dim=1)[range(len(prompts)), actions_B]
                return -(advantages_B * logprobs_B).mean()

            updater.step([loss])
            policy.version += 1
            rate = float(rewards_B.mean())
            metrics = [Metric("success_rate", rate), Metric("episodes", float(len(prompts)))]
            run.record(iteration + 1, metrics)
            if run.is_stopped or iteration + 1 == config.iterations:
                run.save(policy, updater, step=iteration + 1)
                break
        return run.folder.path


def play(
    policy: TablePolicy, task: Task, config: TableConfig, iteration: int
) -> tuple[list[Prompt], list[int], Tensor]:
    """One step in each of some episodes."""
    environment = task.factory()
    prompts, actions, rewards = list[Prompt](), list[int](), list[float]()
    for index in range(config.episodes_per_iteration):
        number = iteration * config.episodes_per_iteration + index
        observation = environment.reset(episode_seed(Split.TRAINING, config.seed, number))
        prompt = policy.prompt(task.prompter.messages(observation))
        policy.submit(GenerationRequest(0, prompt, seed=number, max_new_tokens=1, temperature=1.0))
        [result] = policy.advance()
        [action] = result.completion.token_ids
        prompts.append(prompt)
        actions.append(action)
        rewards.append(environment.step(policy.actions[action]).reward)
    environment.close()
    return prompts, actions, torch.tensor(rewards)


def open_table(
    folder: Path, environment: EnvironmentConfig, prompt: PromptConfig, *, slots: int
) -> tuple[TablePolicy, Task]:
    """A trained table, and the environment as it sees it: what `forethought evaluate` plays."""
    task = open_task(environment, prompt, default_image_size=None)
    weights = load_file(folder / WEIGHTS)
    policy = TablePolicy(actions_of(task), rows=len(weights["weight"]))
    policy.module.load_state_dict(weights)
    return policy, task


def actions_of(task: Task) -> tuple[str, ...]:
    """The environment's fixed list of actions."""
    if task.actions is None:
        raise ConfigError(f"{task.id} has no fixed list of actions — name another environment")
    return task.actions

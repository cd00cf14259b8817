"""The one-step environment with three arms, a very small model, and pairs of its episodes."""

from pathlib import Path

from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.tiny import TinySize, make_tiny
from forethought.rollouts.scripted import expert_response, play, random_response
from forethought.rollouts.task import open_task
from forethought.targets.pairs import Compared, Pair, candidates_of, make_pairs
from forethought.targets.preference import trajectory_scores

ENVIRONMENT = EnvironmentConfig("Bandit", options=("arms=3",))
SIZE = TinySize(hidden_size=16, intermediate_size=16, layers=1, heads=2, vision_hidden_size=8)


def save_small_model(folder: Path) -> Path:
    texts = ['the right answer is a, so I choose b. Answer as JSON: {"thoughts", "action"} Give']
    HuggingFacePolicy(make_tiny(texts * 4, seed=0, size=SIZE), slots=1).save(folder)
    return folder


def pairs_in_play(compared: Compared) -> list[Pair]:
    task = open_task(ENVIRONMENT, PromptConfig(), default_image_size=None)
    candidates = [
        candidate
        for answer in (expert_response("thoughts"), random_response(0))
        for t in play(task.id, task.factory(), task.prompter, answer, range(12))
        for candidate in candidates_of(
            t, trajectory_scores(t, pair_reward="progress_delta", gamma=0.9)
        )
    ]
    return make_pairs(candidates, margin=0.0, most_per_group=16, compared=compared)

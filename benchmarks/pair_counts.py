"""How many pairs InteractiveCOT's pairing finds, beside that by equal states.

    forethought data alfworld --games 100 --seed 0 --output data/alfworld
    python benchmarks/pair_counts.py

ALFWorld, 8 games × 8 episodes of an expert each of whose actions is replaced by a random one with
probability ε. Scores: progress gained, γ = 0.9; margin 2. Two minutes of one core.
"""

import random
from itertools import product

from forethought.configs.parts import EnvironmentConfig, PromptConfig
from forethought.environments.contract import Environment
from forethought.rollouts.scripted import expert_response, play, random_response
from forethought.rollouts.task import Task, open_task
from forethought.targets.pairs import Compared, candidates_of, make_pairs
from forethought.targets.preference import trajectory_scores
from forethought.types import Observation, Trajectory

GAMES, EPISODES = 8, 8
NOISE = (0.5, 0.3, 0.15)
COMPARED: tuple[Compared, ...] = ("start", "state", "task_type")
ALL = 10**6


def episodes(task: Task, noise: float, number: int) -> list[Trajectory]:
    """One of every game."""
    dice = random.Random(number)
    expert, other = expert_response("thoughts"), random_response(number)

    def answer(environment: Environment, observation: Observation) -> str:
        drawn, best = other(environment, observation), expert(environment, observation)
        return drawn if dice.random() < noise else best

    return list(play(task.id, task.factory(), task.prompter, answer, range(GAMES)))


def main() -> None:
    prompt = PromptConfig(history="summary", invalid_action_feedback=True)
    task = open_task(EnvironmentConfig("ALFWorld"), prompt, default_image_size=None)
    for noise in NOISE:
        played = [t for number in range(EPISODES) for t in episodes(task, noise, number)]
        candidates = [
            candidate
            for t in played
            for candidate in candidates_of(
                t, trajectory_scores(t, pair_reward="progress_delta", gamma=0.9)
            )
        ]
        print(f"noise {noise}: {len(candidates)} steps, {sum(t.success for t in played)} won")
        for compared, most in product(COMPARED, (4, ALL)):
            pairs = make_pairs(candidates, margin=2.0, most_per_group=most, compared=compared)
            kept = "all" if most == ALL else f"at most {most} of a group"
            print(f"  same {compared}, {kept}: {len(pairs)}")


if __name__ == "__main__":
    main()

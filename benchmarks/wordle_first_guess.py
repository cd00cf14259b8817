"""How much of a greedy return at Wordle is the first guess, which all games share?

    python benchmarks/wordle_first_guess.py runs/wordle_q_sft_exact
    python benchmarks/wordle_first_guess.py RUN --beta 2 --episodes 1000

The imitator (β = 0) and the run's policy play the same held-out games, each behind its own first
guess and behind the other's.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.configs.acting import ActingConfig
from forethought.configs.file import load_config
from forethought.evaluation.evaluate import EvaluationSettings, play_policy, row_of
from forethought.generation.contract import GenerationRequest, GenerationResult
from forethought.rollouts.task import open_task
from forethought.runs.checkpoints import model_source
from forethought.runs.run_folder import RunFolder
from forethought.types import Message, Prompt
from forethought.value_guided.policy import WeightedPolicy, load_reweighted

SLOTS = 32


class Relay:
    """Satisfies `Policy`: one player guesses first, another goes on."""

    def __init__(
        self, first: WeightedPolicy[ActingConfig], later: WeightedPolicy[ActingConfig]
    ) -> None:
        self._first = first
        self._later = later

    @property
    def version(self) -> int:
        return self._later.version

    @property
    def preferred_image_size(self) -> int | None:
        return self._later.preferred_image_size

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        return self._later.prompt(messages)

    def require_room(self, prompt: Prompt, max_new_tokens: int) -> None:
        self._later.require_room(prompt, max_new_tokens)

    def submit(self, request: GenerationRequest) -> None:
        is_first = len(request.prompt.messages) == 1
        (self._first if is_first else self._later).submit(request)

    def advance(self) -> list[GenerationResult]:
        return [*self._first.advance(), *self._later.advance()]


def main() -> None:
    """Plays all four pairs of players and prints what they return."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("run", help="a run of `train q-sft` on Wordle")
    parser.add_argument("--beta", type=float, default=1.0)
    parser.add_argument("--episodes", type=int, default=500)
    options = parser.parse_args()
    config = load_config(RunFolder(Path(options.run)).config_path, QSFTConfig)
    task = open_task(config.environment, config.prompt, default_image_size=None)
    folder = Path(model_source(options.run))
    first, later = load_reweighted(folder, slots=SLOTS), load_reweighted(folder, slots=SLOTS)
    settings = EvaluationSettings(episodes=options.episodes, num_envs=SLOTS)
    players = (("imitator", 0.0), ("policy", options.beta))
    print(f"{'first guess':<24}{'later ones':<12}return [95 %]")
    for (opener, opening_beta), (follower, later_beta) in product(players, players):
        first.act_as(replace(first.acting, beta=opening_beta))
        later.act_as(replace(later.acting, beta=later_beta))
        games = play_policy(Relay(first, later), task, settings)
        row, guess = row_of(follower, games), games[0].steps[0].action.action
        assert row.return_interval is not None
        low, high = row.return_interval
        opened = f"{opener}, {guess}"
        print(f"{opened:<24}{follower:<12}{row.mean_return:.2f} [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    main()

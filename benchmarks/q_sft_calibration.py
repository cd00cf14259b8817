"""Are Q-SFT's values true? What the learned ratios say, beside what the data then brought.

    python benchmarks/q_sft_calibration.py runs/wordle_q_sft_exact data/wordle_other_seed
    python benchmarks/q_sft_calibration.py RUN DATA --episodes 500 --json

For every token of the episodes: the value clip(p/π, 0, 1) of the newest checkpoint, in the
environment's units, and the discounted return that followed. The value is that of acting well from
there on, the return is that of whoever made the data: it may lie above, hardly below. Take
episodes of another seed than those that were trained on.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from forethought.algorithms.q_sft.config import QSFTConfig
from forethought.algorithms.q_sft.context import find_maps
from forethought.configs.acting import ActingConfig
from forethought.configs.file import load_any_config
from forethought.errors import ConfigError
from forethought.losses.q_sft import likelihood_ratios, support_mask
from forethought.offline.dataset import stored
from forethought.offline.episodes import Episode, gather_actions, lay_out, to_episode
from forethought.runs.checkpoints import model_source
from forethought.runs.run_folder import RunFolder
from forethought.targets.reward_map import RewardMap, StepMaps, returns_to_go
from forethought.value_guided.policy import WeightedPolicy, load_reweighted

BINS = 10
BATCH = 32
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Bin:
    """Tokens whose value lies in one tenth of the range."""

    lowest: float
    highest: float
    tokens: int
    mean_value: float
    mean_return: float


def measure(run: str, data: str, episodes: int) -> tuple[Numbers, Numbers, RewardMap]:
    """Values and returns-to-go of all supported tokens, in the environment's units."""
    folder = RunFolder.open(Path(run))
    config = load_any_config(folder.config_path)
    if not isinstance(config, QSFTConfig):
        raise ConfigError(f"{run}: expected a run of train q-sft")
    maps = find_maps(config)
    policy = load_reweighted(Path(model_source(run)), slots=1)
    values: list[Numbers] = []
    returns: list[Numbers] = []
    trajectories = islice(stored(Path(data)), episodes)
    while chunk := list(islice(trajectories, BATCH)):
        laid_out = [to_episode(trajectory, policy.behavior) for trajectory in chunk]
        for trajectory, episode, ratios_N in zip(
            chunk, laid_out, ratios_of(policy, laid_out, config), strict=True
        ):
            to_go_T = returns_to_go(trajectory.earned, gamma=config.gamma)
            repeated_N = np.repeat(to_go_T, episode.completion_lengths)
            is_supported_N = ratios_N > 0
            values.append(_in_units(ratios_N.clip(0.0, 1.0), episode, maps)[is_supported_N])
            returns.append(repeated_N[is_supported_N])
    return np.concatenate(values), np.concatenate(returns), maps.at(0)


def _in_units(mapped_N: Numbers, episode: Episode, maps: StepMaps) -> Numbers:
    """Values of an episode's tokens in the environment's units."""
    steps = range(episode.first_step, episode.last_step + 1)
    lowest_T = np.array([maps.at(step).lowest for step in steps])
    width_T = np.array([maps.at(step).width for step in steps])
    lengths = episode.completion_lengths
    return mapped_N * np.repeat(width_T, lengths) + np.repeat(lowest_T, lengths)


@torch.no_grad()
def ratios_of(
    policy: WeightedPolicy[ActingConfig], episodes: list[Episode], config: QSFTConfig
) -> list[Numbers]:
    """p/π of every token, 0 outside the support, episode by episode."""
    behavior = policy.behavior
    behavior.module.eval()
    policy.worth.eval()
    parts = lay_out(episodes, behavior.encoder, behavior.device, config.compute.micro_batch_tokens)
    found: list[torch.Tensor] = []
    for part in parts:
        behavior_NV = behavior.module.action_logprobs(part.tokens, part.is_action_BT)
        likelihood_NV = policy.worth.action_logprobs(part.tokens, part.is_action_BT)
        ratios_NV = likelihood_ratios(
            likelihood_logprobs_NV=likelihood_NV,
            behavior_logprobs_NV=behavior_NV,
            support_NV=support_mask(
                logprobs_NV=behavior_NV,
                top_p=config.support.top_p,
                min_probability=config.support.min_probability,
            ),
            floor=config.support.floor,
        )
        found.append(ratios_NV.gather(1, part.actions()[:, None]).squeeze(1))
    return [ratios_N.double().numpy() for ratios_N in gather_actions(episodes, parts, found)]


def in_bins(values_N: Numbers, returns_N: Numbers, reward_map: RewardMap) -> list[Bin]:
    """Tenths of the range that hold a token."""
    edges = np.linspace(reward_map.lowest, reward_map.highest, BINS + 1)
    place_N = np.digitize(values_N, edges[1:-1])
    return [
        Bin(
            float(edges[k]),
            float(edges[k + 1]),
            int((place_N == k).sum()),
            float(values_N[place_N == k].mean()),
            float(returns_N[place_N == k].mean()),
        )
        for k in range(BINS)
        if (place_N == k).any()
    ]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("run")
    parser.add_argument("data")
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    values_N, returns_N, reward_map = measure(options.run, options.data, options.episodes)
    bins = in_bins(values_N, returns_N, reward_map)
    correlation = float(np.corrcoef(values_N, returns_N)[0, 1])
    if options.json:
        found = {"bins": [asdict(one) for one in bins], "correlation": correlation}
        print(json.dumps(found, indent=2))
        return
    print(f"{len(values_N):,} tokens of {options.episodes} episodes, correlation {correlation:.3f}")
    print(f"{'value':>18}  {'tokens':>8}  {'mean value':>10}  {'mean return':>11}")
    for one in bins:
        span = f"{one.lowest:.2f} to {one.highest:.2f}"
        print(f"{span:>18}  {one.tokens:>8,}  {one.mean_value:>10.3f}  {one.mean_return:>11.3f}")


if __name__ == "__main__":
    main()

"""Trajectories as sequences of tokens: the token-level MDP of offline reinforcement learning.

A state is everything before a token, an action is a token of the agent's, and what the environment
replies stands in the state behind the response. Where every prompt goes on from the one before,
the whole episode is one row of `rows.py`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.encoding import Encoder
from forethought.offline.rows import Row, RowBatch, lay_out_rows, to_example, to_rows
from forethought.targets.reward_map import StepMaps
from forethought.types import Trajectory


@dataclass(frozen=True, eq=False)
class Episode:
    """One trajectory; its actions are numbered through all rows, in order."""

    rows: tuple[Row, ...]
    completion_lengths: tuple[int, ...]
    """Tokens of each step's response."""
    rewards: tuple[float, ...]
    """Reward of each step, in the environment's units."""
    terminated: bool
    """Whether the environment ended it; else what follows the last step is not known."""
    bootstrap_value: float | None
    """The recorder's value of the state after the last step, where it had a critic."""
    choices: tuple[tuple[int, ...], ...] | None = None
    """Per action, what could have stood there; None: any token."""
    first_step: int = 0
    """Index of the first response in the environment's episode: above 0 where collecting began
    later."""

    @property
    def actions(self) -> int:
        """Tokens of the agent's."""
        return sum(self.completion_lengths)

    @property
    def last_step(self) -> int:
        """Index in the environment's episode of the last response."""
        return self.first_step + len(self.completion_lengths) - 1

    @property
    def tokens(self) -> int:
        """All tokens, prompts and replies included."""
        return sum(row.length for row in self.rows)

    @property
    def known_actions(self) -> int:
        """Those whose outcome is known: all, or all but the last of an episode that was cut."""
        is_known = self.terminated or self.bootstrap_value is not None
        return self.actions if is_known else self.actions - 1

    @property
    def known_completions(self) -> int:
        """Responses whose outcome is known: all, or all but the last of an episode that was cut."""
        is_known = self.terminated or self.bootstrap_value is not None
        return len(self.completion_lengths) if is_known else len(self.completion_lengths) - 1

    @property
    def known_returns(self) -> int:
        """Actions of which is known what followed them to the end: all, or none."""
        is_known = self.terminated or self.bootstrap_value is not None
        return self.actions if is_known else 0

    def completions(self) -> Iterator[tuple[int, ...]]:
        """The agent's tokens, step by step."""
        said = iter(
            [
                token
                for row in self.rows
                for token, mine in zip(row.completion_ids, row.is_action, strict=True)
                if mine
            ]
        )
        for length in self.completion_lengths:
            yield tuple(islice(said, length))


def to_episode(trajectory: Trajectory, policy: HuggingFacePolicy) -> Episode:
    """A stored trajectory as rows, as few as its prompts allow.

    Raises:
        ValueError: no steps, or a crashed episode.
    """
    if not trajectory.steps or trajectory.failure is not None:
        raise ValueError(f"seed {trajectory.seed}: expected steps, got a failed or empty episode")
    examples = [to_example(step, policy) for step in trajectory.steps]
    rows = to_rows(((example, True) for example in examples), policy.encoder.limits.positions)
    last = trajectory.steps[-1]
    return Episode(
        rows=tuple(rows),
        completion_lengths=tuple(len(example.completion_ids) for example in examples),
        rewards=tuple(step.reward for step in trajectory.steps),
        terminated=last.terminated,
        bootstrap_value=None if last.terminated else trajectory.bootstrap_value,
        first_step=trajectory.first_step,
    )


def lay_out(
    episodes: Sequence[Episode], encoder: Encoder, device: torch.device, max_tokens: int
) -> list[RowBatch]:
    """Micro-batches of all episodes' rows, on the device."""
    rows = [row for episode in episodes for row in episode.rows]
    return lay_out_rows(rows, encoder, device, max_tokens)


def choices_of(
    episodes: Sequence[Episode], batch: RowBatch, *, vocabulary: int, never: Sequence[int]
) -> Tensor:
    """What could have been said in place of each action: bool [N, V].

    Args:
        episodes: all that were laid out.
        vocabulary: V, as the model counts.
        never: tokens that no response can hold.
    """
    device, count = batch.is_action_BT.device, int(batch.is_action_BT.sum())
    if all(episode.choices is None for episode in episodes):
        open_V = torch.ones(vocabulary, dtype=torch.bool, device=device)
        open_V[list(never)] = False
        return open_V.expand(count, vocabulary)
    by_row = [choices for episode in episodes for choices in _choices_by_row(episode)]
    chosen_NV = torch.zeros(count, vocabulary, dtype=torch.bool)
    for number, choices in enumerate(chain.from_iterable(by_row[i] for i in batch.order)):
        chosen_NV[number, list(choices)] = True
    return chosen_NV.to(device)


def _choices_by_row(episode: Episode) -> list[list[tuple[int, ...]]]:
    assert episode.choices is not None
    choices = iter(episode.choices)
    return [list(islice(choices, row.actions)) for row in episode.rows]


def gather_actions(
    episodes: Sequence[Episode], batches: Sequence[RowBatch], numbers: Sequence[Tensor]
) -> list[Tensor]:
    """Numbers per action, micro-batch by micro-batch, as numbers per episode, each in its order.

    Args:
        episodes: all that were laid out.
        numbers: [N] of each micro-batch.
    """
    counts = [row.actions for episode in episodes for row in episode.rows]
    pieces = [torch.empty(0)] * len(counts)
    for batch, numbers_N in zip(batches, numbers, strict=True):
        split = numbers_N.cpu().split([counts[i] for i in batch.order])
        for i, piece in zip(batch.order, split, strict=True):
            pieces[i] = piece
    rows = iter(pieces)
    return [torch.cat(list(islice(rows, len(episode.rows)))) for episode in episodes]


def scatter_actions(
    episodes: Sequence[Episode], batches: Sequence[RowBatch], numbers: Sequence[Tensor]
) -> list[Tensor]:
    """The way back: numbers per episode as numbers per action of each micro-batch."""
    pieces = [
        piece
        for episode, numbers_N in zip(episodes, numbers, strict=True)
        for piece in numbers_N.split([row.actions for row in episode.rows])
    ]
    return [torch.cat([pieces[i] for i in batch.order]) for batch in batches]


class Transitions(NamedTuple):
    """What each action of an episode leads to; [N] each, float32."""

    rewards_N: Tensor
    """Mapped to probabilities."""
    discounts_N: Tensor
    """0 where the environment ended."""
    is_known_N: Tensor
    """Bool: False where the episode was cut and nobody knows what would have followed."""
    is_inside_N: Tensor
    """Bool: False at the last token of a response."""


def transitions(
    episode: Episode, maps: StepMaps, *, gamma: float, utterance_gamma: float
) -> Transitions:
    """The rewards and discounts of an episode's tokens.

    A step's reward comes with the last token of its response, γ with it; the tokens before bring
    nothing, and what follows them is discounted by `utterance_gamma`.
    """
    rewards: list[float] = []
    discounts: list[float] = []
    steps = zip(episode.completion_lengths, episode.rewards, strict=True)
    for step, (length, reward) in enumerate(steps, start=episode.first_step):
        own = maps.at(step)
        inside = own.reward(0.0, discount=utterance_gamma)
        mapped, discount = own.transition(reward, discount=gamma, following=maps.at(step + 1))
        rewards += [inside] * (length - 1) + [mapped]
        discounts += [utterance_gamma] * (length - 1) + [discount]
    is_known_N = torch.ones(len(rewards), dtype=torch.bool)
    is_inside_N = torch.ones(len(rewards), dtype=torch.bool)
    is_inside_N[torch.tensor(episode.completion_lengths).cumsum(0) - 1] = False
    if episode.terminated:
        discounts[-1] = 0.0
        last = maps.at(episode.last_step)
        rewards[-1] = last.reward(episode.rewards[-1], discount=0.0)
    elif episode.bootstrap_value is None:
        is_known_N[-1] = False
    return Transitions(torch.tensor(rewards), torch.tensor(discounts), is_known_N, is_inside_N)


def returns_after(episode: Episode, moves: Transitions, maps: StepMaps) -> Tensor:
    """What followed each action, from the next one on: [N], mapped; not a number behind the last
    one unless the recorder's critic knew."""
    returns = [_value_after_last_step(episode, maps)]
    steps = zip(moves.rewards_N.tolist(), moves.discounts_N.tolist(), strict=True)
    for reward, discount in reversed(list(steps)):
        returns.append(reward + (discount * returns[-1] if discount > 0 else 0.0))
    return torch.tensor(returns[-2::-1], dtype=torch.float32)


def next_values(episode: Episode, values_N: Tensor, maps: StepMaps) -> Tensor:
    """The value of the state that each action leads to: [N], of the next action's state.

    Behind the last one it is what the recorder's critic said, mapped; or not a number.
    """
    return torch.cat([values_N[1:], torch.tensor([_value_after_last_step(episode, maps)])])


def _value_after_last_step(episode: Episode, maps: StepMaps) -> float:
    """The recorder's value of the state behind the last step, mapped; or not a number."""
    value = episode.bootstrap_value
    return float("nan") if value is None else maps.at(episode.last_step + 1).to_unit(value)

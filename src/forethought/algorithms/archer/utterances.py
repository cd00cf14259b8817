"""Whole answers as actions: the utterance-level MDP of offline reinforcement learning.

A state is everything before an answer, an action is the whole answer, and the next state is the
one before the answer to come. Among an episode's tokens (`episodes.py`) the state is that of the
answer's first token; the answer is complete with its last one.

    action    a a a   b b        tokens of two answers
    first     *       *          their states: what V is asked about
    last          *     *        what Q is asked about: that token, where all before it are said
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from forethought.offline.episodes import Episode, next_values, scatter_actions, transitions
from forethought.offline.rows import RowBatch
from forethought.targets.reward_map import WORLD_UNITS
from forethought.targets.token_values import td_targets


class AnswerBatch(NamedTuple):
    """The U answers among the N action tokens of one micro-batch."""

    rows: RowBatch
    is_first_N: Tensor
    is_last_N: Tensor
    is_known_U: Tensor
    """Bool: False where the episode was cut behind the answer and nobody knows what followed."""

    def of_tokens(self) -> Tensor:
        """Which answer each token belongs to: int64 [N]."""
        return self.is_first_N.long().cumsum(0) - 1


def mark_answers(
    episodes: Sequence[Episode], batches: Sequence[RowBatch], device: torch.device
) -> list[AnswerBatch]:
    """Where answers begin and end. A row holds whole answers, so the k-th beginning of a
    micro-batch and its k-th end are of the same one."""
    firsts: list[Tensor] = []
    lasts: list[Tensor] = []
    known: list[Tensor] = []
    for episode in episodes:
        ends = torch.tensor(episode.answer_lengths).cumsum(0)
        is_last_N = torch.zeros(episode.actions, dtype=torch.bool)
        is_last_N[ends - 1] = True
        is_known_N = torch.ones_like(is_last_N)
        is_known_N[-1] = episode.known_answers == len(episode.answer_lengths)
        firsts.append(is_last_N.roll(1))
        lasts.append(is_last_N)
        known.append(is_known_N)
    marks = (scatter_actions(episodes, batches, one) for one in (firsts, lasts, known))
    return [
        AnswerBatch(rows, first_N.to(device), last_N.to(device), known_N[last_N].to(device))
        for rows, first_N, last_N, known_N in zip(batches, *marks, strict=True)
    ]


def answer_targets(episode: Episode, values_N: Tensor, *, gamma: float) -> Tensor:
    """What Q of each answer is to be, at the answer's last token; 0 elsewhere.

        y = r + γ V(s')

    s' is the state before the next answer. Behind the last one there is none where the world
    ended; else it is worth what the recorder's critic said, and where there was none the answer
    has no target (`AnswerBatch.is_known_U`).

    Args:
        values_N: V in the state of each token; only those of first tokens are asked for.
        gamma: per environment step; inside an answer nothing is discounted.

    Returns:
        [N], in the world's units.
    """
    moves = transitions(episode, WORLD_UNITS, gamma=gamma, utterance_gamma=1.0)
    is_end_N = ~moves.is_inside_N & moves.is_known_N
    targets = td_targets(
        rewards_N=moves.rewards_N[is_end_N],
        discounts_N=moves.discounts_N[is_end_N],
        next_values_N=next_values(episode, values_N, WORLD_UNITS)[is_end_N],
    )
    return torch.zeros_like(values_N).masked_scatter(is_end_N, targets)

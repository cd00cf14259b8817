"""Answers as actions: where each begins and ends, and what it leads to."""

from pathlib import Path

import pytest
import torch

from forethought.algorithms.archer.critic import completion_targets, mark_completions
from forethought.configs.parts import EnvironmentConfig
from forethought.generation.huggingface import load_policy
from forethought.offline.episodes import Episode, lay_out, to_episode
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.task import Task, open_task
from tests.unit.algorithms.conftest import ACTION_ONLY
from tests.unit.algorithms.crossing import cut_after, straight_on

CPU, NAN = torch.device("cpu"), float("nan")


@pytest.mark.parametrize(
    ("terminated", "bootstrap", "last", "known"),
    [
        # 1 + 0.5 · 20 and 2 + 0.5 · 30, with the values of the next answers' states.
        pytest.param(True, None, -1.0, 3, id="ended"),
        pytest.param(False, 8.0, 3.0, 3, id="cut, and judged by a critic"),
        pytest.param(False, None, 0.0, 2, id="cut: no target"),
    ],
)
def test_targets(terminated: bool, bootstrap: float | None, last: float, known: int) -> None:
    """Of answers of two, three and one token; other states' values are not asked for."""
    episode = Episode((), (2, 3, 1), (1.0, 2.0, -1.0), terminated, bootstrap)
    values_N = torch.tensor([NAN, NAN, 20.0, NAN, NAN, 30.0])
    targets_N = completion_targets(episode, values_N, gamma=0.5)
    assert targets_N.tolist() == pytest.approx([0.0, 11.0, 0.0, 0.0, 17.0, last])
    assert episode.known_completions == known


@pytest.mark.parametrize("max_tokens", [120, 4096])
def test_marks(max_tokens: int, crossing: Task, small_model: Path) -> None:
    """In rows of one answer and in a conversation, laid out in another order, over several
    parts: each token belongs to its answer, first and last token included."""
    policy = load_policy(str(small_model), slots=1)
    wordle = open_task(EnvironmentConfig("Wordle"), ACTION_ONLY, default_image_size=None)
    answer = expert_response("action_only")
    conversation = next(play("Wordle", wordle.factory(), wordle.prompter, answer, range(1)))
    walks = list(straight_on(crossing, range(2)))
    trajectories = [walks[0], conversation, cut_after(walks[1], 2)]
    episodes = [to_episode(one, policy) for one in trajectories]
    assert [len(one.rows) for one in episodes] == [4, 1, 2]
    parts = lay_out(episodes, policy.encoder, CPU, max_tokens)
    assert (len(parts) > 1) == (max_tokens == 120)
    found: list[tuple[int, ...]] = []
    for one in mark_completions(episodes, parts, CPU):
        completions_N, actions_N = one.of_tokens(), one.rows.actions()
        for number in range(len(one.is_known_U)):
            is_mine_N = completions_N == number
            found.append(tuple(actions_N[is_mine_N].tolist()))
            ends = one.is_first_N[is_mine_N], one.is_last_N[is_mine_N]
            assert [end.nonzero().flatten().tolist() for end in ends] == [[0], [len(found[-1]) - 1]]
    assert sorted(found) == sorted(one for episode in episodes for one in episode.completions())
    known = [one.is_known_U for one in mark_completions(episodes, parts, CPU)]
    assert torch.cat(known).logical_not().sum() == 1
    alone = mark_completions(episodes[2:], lay_out(episodes[2:], policy.encoder, CPU, 4096), CPU)
    assert [one.is_known_U.sum().item() for one in alone] == [1]

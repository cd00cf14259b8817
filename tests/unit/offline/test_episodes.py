"""Trajectories as tokens: rows, whose tokens are whose, and what each of them leads to."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from forethought.algorithms.q_sft.context import CompletionTrie
from forethought.configs.parts import EnvironmentConfig
from forethought.errors import PromptTooLongError
from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.models.batching import Example
from forethought.models.limits import Limits
from forethought.offline.episodes import (
    Episode,
    choices_of,
    gather_actions,
    lay_out,
    next_values,
    returns_after,
    scatter_actions,
    to_episode,
    transitions,
)
from forethought.offline.rows import pack, to_example, to_rows
from forethought.rollouts.scripted import expert_response, play
from forethought.rollouts.shard_files import ImageEncoder
from forethought.rollouts.task import Task, open_task
from forethought.targets.reward_map import RewardMap, StepMaps
from forethought.types import EnvironmentFailure, Message, Prompt, Trajectory
from tests.unit.algorithms.conftest import ACTION_ONLY
from tests.unit.algorithms.crossing import cut_after, straight_on

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def policy(small_model: Path) -> HuggingFacePolicy:
    return load_policy(str(small_model), slots=2)


@pytest.fixture(scope="module")
def conversation() -> Trajectory:
    """Wordle, in which every prompt goes on where the last answer ended."""
    task = open_task(EnvironmentConfig("Wordle"), ACTION_ONLY, default_image_size=None)
    answer = expert_response("action_only")
    episodes = play(task.id, task.factory(), task.prompter, answer, range(100))
    return next(episode for episode in episodes if len(episode.steps) >= 4)


def test_a_conversation_is_one_row(conversation: Trajectory, policy: HuggingFacePolicy) -> None:
    episode = to_episode(conversation, policy)
    (row,) = episode.rows
    last = conversation.steps[-1]
    prompt_ids = policy.prompt(last.prompt.messages).token_ids
    answer_ids = policy.encoder.tokenize_response(last.completion.text)
    whole = (*row.prompt_ids, *row.completion_ids)
    assert whole == (*prompt_ids, *answer_ids)
    said = [policy.encoder.tokenize_response(step.completion.text) for step in conversation.steps]
    assert list(episode.completions()) == said
    assert episode.actions == row.actions == sum(map(len, said))
    assert episode.tokens == len(whole)


def test_steps_that_stand_alone_are_rows(crossing: Task, policy: HuggingFacePolicy) -> None:
    (trajectory,) = straight_on(crossing, range(1, 2))
    episode = to_episode(trajectory, policy)
    assert len(episode.rows) == len(trajectory.steps) == 4
    assert all(all(row.is_action) for row in episode.rows)
    assert [row.prompt_ids for row in episode.rows] == [
        policy.prompt(step.prompt.messages).token_ids for step in trajectory.steps
    ]


def test_a_row_ends_where_the_model_reads_no_further(
    conversation: Trajectory, policy: HuggingFacePolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = to_episode(conversation, policy)
    answers = [(to_example(step, policy), True) for step in conversation.steps]
    assert len(to_rows(answers, whole.tokens)) == 1
    assert len(to_rows(answers, whole.tokens - 1)) == 2
    # The last prompt holds the whole conversation: alone, too, it is more than the model reads.
    monkeypatch.setattr(policy.encoder, "limits", Limits(whole.tokens - 1, None, None, "", 2))
    with pytest.raises(PromptTooLongError, match=r"data, a step in state .*: the prompt with all"):
        to_episode(conversation, policy)


def test_scored_together_as_each_alone(
    conversation: Trajectory, crossing: Task, policy: HuggingFacePolicy
) -> None:
    """One pass over the rows gives every token the log-prob it has after its own prompt."""
    trajectories = [conversation, *straight_on(crossing, range(2))]
    episodes = [to_episode(trajectory, policy) for trajectory in trajectories]
    for chosen in (episodes, episodes[1:]):
        parts = lay_out(chosen, policy.encoder, CPU, max_tokens=400)
        assert len(parts) > 1 or len(chosen) == 2
        with torch.no_grad():
            found = [
                policy.module.action_logprobs(part.tokens, part.is_action_BT)
                .gather(1, part.actions()[:, None])
                .squeeze(1)
                for part in parts
            ]
        by_episode = gather_actions(chosen, parts, found)
        for trajectory, found_N in zip(trajectories[-len(chosen) :], by_episode, strict=True):
            examples = [
                Example(
                    policy.prompt(step.prompt.messages),
                    policy.encoder.tokenize_response(step.completion.text),
                )
                for step in trajectory.steps
            ]
            scores = policy.score(examples, temperature=1.0).logprobs_BT
            expected = [
                row[: len(example.completion_ids)]
                for row, example in zip(scores, examples, strict=True)
            ]
            torch.testing.assert_close(found_N, torch.cat(expected), atol=1e-4, rtol=1e-4)


def test_there_and_back(crossing: Task, policy: HuggingFacePolicy) -> None:
    episodes = [to_episode(one, policy) for one in straight_on(crossing, range(6))]
    parts = lay_out(episodes, policy.encoder, CPU, max_tokens=200)
    assert len(parts) > 2
    numbers = [torch.rand(episode.actions) for episode in episodes]
    back = gather_actions(episodes, parts, scatter_actions(episodes, parts, numbers))
    assert all(torch.equal(one, other) for one, other in zip(numbers, back, strict=True))


UNIT = StepMaps((RewardMap(0.0, 1.0),))
EPISODE = Episode(
    rows=(),
    completion_lengths=(2, 3),
    rewards=(0.25, 0.5),
    terminated=True,
    bootstrap_value=None,
)


@pytest.mark.parametrize(
    ("changes", "utterance_gamma", "rewards", "discounts"),
    [
        pytest.param({}, 1.0, [0, 0.25, 0, 0, 0.5], [1, 0.9, 1, 1, 0], id="ended"),
        pytest.param({}, 0.9, [0, 0.25, 0, 0, 0.5], [0.9, 0.9, 0.9, 0.9, 0], id="γ inside, too"),
        pytest.param(
            {"terminated": False}, 1.0, [0, 0.25, 0, 0, 0.5], [1, 0.9, 1, 1, 0.9], id="cut"
        ),
    ],
)
def test_what_tokens_lead_to(
    changes: dict[str, bool], utterance_gamma: float, rewards: list[float], discounts: list[float]
) -> None:
    episode = replace(EPISODE, **changes)
    way = transitions(episode, UNIT, gamma=0.9, utterance_gamma=utterance_gamma)
    assert way.rewards_N.tolist() == pytest.approx(rewards)
    assert way.discounts_N.tolist() == pytest.approx(discounts)
    assert way.is_known_N.tolist() == [True] * 4 + [episode.terminated]
    assert episode.known_actions == int(way.is_known_N.sum())


@pytest.mark.parametrize("utterance_gamma", [1.0, 0.9])
def test_mapped_rewards_add_up_to_the_mapped_return(utterance_gamma: float) -> None:
    reward_map = RewardMap(-2.0, 4.0)
    way = transitions(EPISODE, StepMaps((reward_map,)), gamma=0.9, utterance_gamma=utterance_gamma)
    mapped, value = 0.0, 0.0
    for reward, discount in zip(way.rewards_N.flip(0), way.discounts_N.flip(0), strict=True):
        mapped = float(reward) + float(discount) * mapped
    for length, reward in reversed(list(zip((2, 3), EPISODE.rewards, strict=True))):
        value = utterance_gamma ** (length - 1) * (reward + 0.9 * value)
    assert reward_map.from_unit(mapped) == pytest.approx(value)


@pytest.mark.parametrize("first_step", [0, 1])
def test_maps_of_steps_hold_the_return_from_each(first_step: int) -> None:
    """Each answer's first token has the return from there on, on the scale of its step."""
    maps = StepMaps((RewardMap(-2.0, 4.0), RewardMap(0.0, 2.0), RewardMap(-1.0, 1.0)))
    episode = replace(EPISODE, first_step=first_step)
    way = transitions(episode, maps, gamma=0.9, utterance_gamma=1.0)
    mapped, found = 0.0, []
    for reward, discount in zip(way.rewards_N.flip(0), way.discounts_N.flip(0), strict=True):
        mapped = float(reward) + float(discount) * mapped
        found.append(mapped)
    assert maps.at(first_step).from_unit(found[-1]) == pytest.approx(0.25 + 0.9 * 0.5)
    assert maps.at(first_step + 1).from_unit(found[2]) == pytest.approx(0.5)
    cut = replace(episode, terminated=False, bootstrap_value=0.5)
    way = transitions(cut, maps, gamma=0.9, utterance_gamma=1.0)
    last = maps.at(first_step + 1).from_unit(float(returns_after(cut, way, maps)[3]))
    assert last == pytest.approx(0.5 + 0.9 * 0.5)
    behind = next_values(cut, torch.zeros(5), maps)[4]
    assert maps.at(first_step + 2).from_unit(float(behind)) == pytest.approx(0.5)


def test_a_later_part_keeps_its_steps(conversation: Trajectory, policy: HuggingFacePolicy) -> None:
    later = replace(conversation, first_step=2, steps=conversation.steps[2:])
    episode = to_episode(later, policy)
    assert (episode.first_step, episode.last_step) == (2, len(conversation.steps) - 1)


def test_values_belong_to_the_next_state() -> None:
    values_N = torch.tensor([0.1, 0.2, 0.3])
    assert next_values(EPISODE, values_N, UNIT)[:2].tolist() == pytest.approx([0.2, 0.3])
    assert next_values(EPISODE, values_N, UNIT)[2].isnan()
    cut = replace(EPISODE, terminated=False, bootstrap_value=3.0)
    assert next_values(cut, values_N, StepMaps((RewardMap(-1.0, 7.0),)))[2].item() == 0.5


def test_what_followed_in_the_data() -> None:
    """γ = 0.9 and rewards 0.25 and 0.5 with two and three tokens: behind the first token
    0.25 + 0.9 · 0.5 = 0.7, behind the second 0.5."""
    way = transitions(EPISODE, UNIT, gamma=0.9, utterance_gamma=1.0)
    assert returns_after(EPISODE, way, UNIT)[:4].tolist() == pytest.approx([0.7, 0.5, 0.5, 0.5])
    cut = replace(EPISODE, terminated=False, bootstrap_value=1.0)
    way = transitions(cut, UNIT, gamma=0.9, utterance_gamma=1.0)
    expected = [0.25 + 0.9 * 1.4, 1.4, 1.4, 1.4, 1.0]
    assert returns_after(cut, way, UNIT).tolist() == pytest.approx(expected)
    assert (EPISODE.known_returns, cut.known_returns) == (5, 5)
    assert replace(cut, bootstrap_value=None).known_returns == 0


def test_what_could_stand_there() -> None:
    """Answers 1 2 9 and 1 3 9: after 1 there is a choice."""
    trie = CompletionTrie([(1, 2, 9), (1, 3, 9)])
    choices = tuple(trie.choices((1, 3, 9)))
    assert choices == ((1,), (2, 3), (9,))
    example = Example(Prompt((Message("user", "?"),), (5,)), (1, 3, 9))
    row = pack(example, ImageEncoder())
    free = replace(EPISODE, rows=(row,), completion_lengths=(3,))
    bound = replace(free, choices=choices)

    class Part:
        is_action_BT = torch.ones(1, 3, dtype=torch.bool)
        order = (0,)

    everything = choices_of([free], Part(), vocabulary=6, never=[4])  # type: ignore[arg-type]
    assert everything.int().tolist() == [[1, 1, 1, 1, 0, 1]] * 3
    legal = choices_of([bound], Part(), vocabulary=10, never=[4])  # type: ignore[arg-type]
    assert [np.flatnonzero(row).tolist() for row in legal.numpy()] == [[1], [2, 3], [9]]


def test_crashes_are_no_episodes(crossing: Task, policy: HuggingFacePolicy) -> None:
    (trajectory,) = straight_on(crossing, range(1))
    with pytest.raises(ValueError, match="failed or empty episode"):
        to_episode(replace(trajectory, failure=EnvironmentFailure.CRASH), policy)
    assert not to_episode(cut_after(trajectory, 2), policy).terminated

"""What a randomly initialized model is prepared for."""

from pathlib import Path
from typing import Any, cast

import pytest

from forethought.algorithms.sft.config import SFTConfig
from forethought.configs.parts import EnvironmentConfig
from forethought.environments.contract import ExpertAction
from forethought.models.tiny import PAPER, Color, train_tokenizer
from forethought.prompts.responses import write_response
from forethought.rollouts.store import read_shards
from forethought.rollouts.task import Task, open_task
from forethought.training.start import prepare_tiny, surroundings_of
from tests.unit.algorithms.conftest import ACTION_ONLY, CROSSING


def test_the_tokenizer_reads_the_data_where_there_are_any(crossing: Task, walks: Path) -> None:
    config = SFTConfig(data=str(walks), environment=CROSSING, prompt=ACTION_ONLY)
    steps = [step for trajectory in read_shards(walks) for step in trajectory.steps]
    told = [(*(m.text for m in step.prompt.messages), step.completion.text) for step in steps]
    assert surroundings_of(crossing, config).texts == [text for texts in told for text in texts]


def test_the_tokenizer_reads_the_expert_where_there_are_none(crossing: Task) -> None:
    config = SFTConfig(environment=CROSSING, prompt=ACTION_ONLY)
    texts = surroundings_of(crossing, config).texts
    assert {text for text in texts if text.startswith("{")} == {
        write_response(ExpertAction(move, ()), "action_only") for move in ("right", "down")
    }


class SecondProcess:
    """As much of a run as is asked for here: the other process has made what it gathers."""

    process = 1

    def __init__(self, made: tuple[str, Color]) -> None:
        self.made = made

    def gather(self, items: list[tuple[str, Color]]) -> list[tuple[str, Color]]:
        assert not items, "they were made a second time"
        return [self.made]


def test_only_the_first_process_plays_and_trains_the_tokenizer(crossing: Task) -> None:
    config = SFTConfig(environment=CROSSING, prompt=ACTION_ONLY)
    trained = train_tokenizer(surroundings_of(crossing, config).texts)
    other = SecondProcess((trained.backend_tokenizer.to_str(), (0.1, 0.2, 0.3)))
    taken_over, background = prepare_tiny(crossing, config, cast(Any, other))
    assert taken_over.get_vocab() == trained.get_vocab()
    text = '{"action": "right"}'
    assert taken_over.encode(text) == trained.encode(text)
    assert taken_over.eos_token_id == trained.eos_token_id
    assert background == (0.1, 0.2, 0.3)


class OnlyProcess:
    """As much of a run as is asked for here."""

    process = 0

    def gather(self, items: list[tuple[str, Color]]) -> list[tuple[str, Color]]:
        return items


@pytest.mark.parametrize(
    ("game", "expected"),
    [("NumberLine", PAPER), ("gym:FrozenLake-v1", PAPER)],
    ids=["paper", "no images"],
)
def test_the_background_is_that_of_the_environment(game: str, expected: Color) -> None:
    config = SFTConfig(environment=EnvironmentConfig(id=game, image_size=64))
    task = open_task(config.environment, config.prompt, default_image_size=64)
    _, background = prepare_tiny(task, config, cast(Any, OnlyProcess()))
    assert background == expected

"""Texts of a randomly initialized model."""

from pathlib import Path
from typing import Any, cast

from forethought.algorithms.sft.config import SFTConfig
from forethought.environments.contract import ExpertAction
from forethought.models.tiny import train_tokenizer
from forethought.prompts.responses import write_response
from forethought.rollouts.store import read_shards
from forethought.rollouts.task import Task
from forethought.training.start import texts_of, tokenizer_of
from tests.unit.algorithms.conftest import ACTION_ONLY, CROSSING


def test_the_tokenizer_reads_the_data_where_there_are_any(crossing: Task, walks: Path) -> None:
    config = SFTConfig(data=str(walks), environment=CROSSING, prompt=ACTION_ONLY)
    steps = [step for trajectory in read_shards(walks) for step in trajectory.steps]
    told = [(*(m.text for m in step.prompt.messages), step.completion.text) for step in steps]
    assert texts_of(crossing, config) == [text for texts in told for text in texts]


def test_the_tokenizer_reads_the_expert_where_there_are_none(crossing: Task) -> None:
    texts = texts_of(crossing, SFTConfig(environment=CROSSING, prompt=ACTION_ONLY))
    assert {text for text in texts if text.startswith("{")} == {
        write_response(ExpertAction(move, ()), "action_only") for move in ("right", "down")
    }


class SecondProcess:
    """As much of a run as the tokenizer asks for: the other process has trained it."""

    process = 1

    def __init__(self, trained: str) -> None:
        self.trained = trained

    def gather(self, items: list[str]) -> list[str]:
        assert not items, "it was trained a second time"
        return [self.trained]


def test_only_the_first_process_trains_the_tokenizer(crossing: Task) -> None:
    config = SFTConfig(environment=CROSSING, prompt=ACTION_ONLY)
    trained = train_tokenizer(texts_of(crossing, config))
    other = cast(Any, SecondProcess(trained.backend_tokenizer.to_str()))
    taken_over = tokenizer_of(crossing, config, other)
    assert taken_over.get_vocab() == trained.get_vocab()
    text = '{"action": "right"}'
    assert taken_over.encode(text) == trained.encode(text)
    assert taken_over.eos_token_id == trained.eos_token_id

"""Runs made by hand, in all states that a report may meet, and the page as a browser reads it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from forethought.algorithms.ppo.config import PPOConfig
from forethought.algorithms.sft.config import SFTConfig
from forethought.configs.contract import AnyConfig
from forethought.configs.file import dump_config
from forethought.configs.parts import RolloutConfig
from forethought.evaluation.results import Evaluation, EvaluationRow, SeedRange
from forethought.evaluation.statistics import Interval
from forethought.rollouts.store import write_shard
from forethought.runs.run_folder import RunFolder
from forethought.types import (
    Completion,
    EnvironmentFailure,
    FinishReason,
    Image,
    Message,
    Metric,
    ParsedAction,
    ParseFailure,
    Prompt,
    Span,
    Step,
    Trajectory,
)

HOSTILE = (
    "</title></script><script>alert(1)</script></pre></noscript><img src=x onerror=alert(2)>"
    '<!-- \u2028\u2029 & "q" \'s\' ]]> \ud83d \udc00 \x00 \u202e${note} {"action": "go"}'
)
"""What no page may run: ends of elements, a half pair of surrogates from either half, line
separators, a zero byte, a right-to-left override, a template's placeholder."""

PPO_STEPS = 8
"""Environment steps of one iteration of `PPO`."""
PPO = PPOConfig(
    model="runs/sft",
    output="runs/ppo",
    seed=3,
    total_steps=4 * PPO_STEPS,
    batch_size=PPO_STEPS,
    rollout=RolloutConfig(num_envs=4, steps_per_iteration=PPO_STEPS),
)
SFT = SFTConfig(output="runs/sft", expert_steps=64, batch_size=16)


def completion(text: str, width: int = 4) -> Completion:
    """Tokens of so many characters each, and one without text that ends the answer."""
    offsets = (*range(0, len(text), width), len(text))
    logprobs = tuple(-0.125 * index for index in range(len(offsets)))
    return Completion(
        tuple(range(len(offsets))), logprobs, offsets, text, FinishReason.STOP, temperature=0.5
    )


def step(
    text: str = '{"thoughts": "up", "action": "go"}',
    *,
    reward: float = 0.0,
    value: float | None = None,
    image: Image | None = None,
    is_valid: bool = True,
    last: bool = False,
    key: str = "here",
    message: str = "Where to?",
) -> Step:
    answer = completion(text)
    tokens = len(answer.token_ids)
    split = sum(offset < max(0, text.find('"action"')) for offset in answer.token_offsets)
    return Step(
        prompt=Prompt((Message("user", message, image),), (1, 2)),
        completion=answer,
        action=ParsedAction(
            action="go" if is_valid else text,
            is_valid=is_valid,
            failure=None if is_valid else ParseFailure.UNKNOWN_ACTION,
            thought_span=Span(0, split),
            action_span=Span(split, tokens),
        ),
        reward=reward,
        terminated=last,
        truncated=False,
        value=value,
        policy_version=1,
        state_key=key,
        duration_s=0.0,
    )


def episode(*steps: Step, seed: int = 1, success: bool = False, first_step: int = 0) -> Trajectory:
    return Trajectory("Rooms", seed, "walk", first_step, steps, None, success, ())


def won(seed: int = 1) -> Trajectory:
    return replace(
        episode(step(), step(reward=1.0, last=True), seed=seed, success=True),
        metrics=(Metric("progress", 1.0),),
    )


def lost(seed: int = 2) -> Trajectory:
    return episode(step(reward=-1.0, is_valid=False), step(last=True), seed=seed)


def unfinished(seed: int = 3) -> Trajectory:
    return episode(step(), step(), seed=seed)


def crashed(seed: int = 4) -> Trajectory:
    return replace(unfinished(seed), failure=EnvironmentFailure.CRASH)


def never_begun(seed: int = 5) -> Trajectory:
    return replace(episode(seed=seed), failure=EnvironmentFailure.TIMEOUT)


def image(brightness: int = 200, size: int = 8) -> Image:
    return np.full((size, size, 3), brightness, dtype=np.uint8)


def row(name: str, rate: float, *, failures: int = 0) -> EvaluationRow:
    """Of 40 episodes."""
    return EvaluationRow(
        name=name,
        success_rate=rate,
        success_interval=Interval(max(0.0, rate - 0.1), min(1.0, rate + 0.1)),
        mean_return=-1.25,
        return_interval=Interval(-2.0, -0.5),
        invalid_rate=0.125,
        mean_episode_steps=6.5,
        mean_completion_tokens=31.0,
        episodes=40,
        failures=failures,
        metrics=(Metric("progress", 0.75),),
    )


def evaluation(
    rate: float, *, checkpoint: str | None = "step_4", temperature: float = 0.0, failures: int = 0
) -> Evaluation:
    return Evaluation(
        environment_id="NumberLine",
        seed_range=SeedRange(100, 140),
        checkpoint=checkpoint,
        temperature=temperature,
        policy=row("policy", rate, failures=failures),
        random=replace(row("random", 0.2), mean_completion_tokens=None),
        expert=replace(row("expert", 1.0), mean_completion_tokens=None),
        ceiling=EvaluationRow("ceiling", success_rate=1.0),
    )


def make_run(
    path: Path,
    config: AnyConfig = PPO,
    *,
    metrics: Sequence[str] = (),
    timings: Sequence[str] = (),
    judged: Evaluation | None = None,
    held_out: Sequence[Trajectory] | None = None,
    training: Sequence[Trajectory] | None = None,
    versions: str | None = None,
) -> Path:
    """A run folder that holds what is given, and nothing else.

    Args:
        metrics, timings: numbers of one line of the log each, as JSON without its step.
    """
    folder = RunFolder.create(path)
    folder.config_path.write_text(dump_config(config), encoding="utf-8")
    for file, lines in ((folder.metrics_path, metrics), (folder.timings_path, timings)):
        if lines:
            file.write_text("".join(_numbered(lines)), encoding="utf-8")
    if judged is not None:
        folder.evaluation_path.write_text(judged.to_json(), encoding="utf-8")
    if held_out is not None:
        write_shard(folder.evaluation_episodes_path, held_out)
    if training is not None:
        write_shard(folder.trajectories_dir / "step_000004_process_0.parquet", training)
    if versions is not None:
        folder.environment_path.write_text(versions, encoding="utf-8")
    return path


def _numbered(lines: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        yield json.dumps({"step": number} | json.loads(line)) + "\n"


class Element:
    """One element of a page: its tag, its attributes, and all text inside it."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.text = ""


class Page(HTMLParser):
    """A page's elements in the order in which they begin. Scripts end where browsers end them."""

    _NEVER_CLOSED = ("meta", "img", "br", "link", "input")

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in self._NEVER_CLOSED:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str, kind: str | None = None) -> list[Element]:
        """The elements of a tag, or those of them with a class."""
        return [
            element
            for element in self.elements
            if element.tag == tag
            and (kind is None or kind in element.attributes.get("class", "").split())
        ]

    def with_id(self, name: str) -> Element:
        return next(e for e in self.elements if e.attributes.get("id") == name)

    def section(self, name: str) -> str:
        """The text of a section, spaces made single."""
        return " ".join(self.with_id(name).text.split())

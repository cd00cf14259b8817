"""Episodes as data for the page's script, and the first of them without it."""

import base64
import json
import math
from dataclasses import replace
from io import BytesIO

import numpy as np
import PIL.Image
import pytest

from forethought.errors import visible
from forethought.reports.markup import ImageTable
from forethought.reports.replay import Replay, make_replay, select_episodes
from forethought.reports.replay_html import static_replay
from forethought.types import FinishReason, Image, Message, Metric, Prompt, Trajectory
from tests.unit.reports.builders import (
    HOSTILE,
    Page,
    completion,
    episode,
    image,
    lost,
    step,
    unfinished,
    won,
)


def replay_of(*trajectories: Trajectory) -> Replay:
    return make_replay(select_episodes(trajectories))


def pixels(address: str) -> Image:
    data = base64.b64decode(address.partition(",")[2])
    return np.asarray(PIL.Image.open(BytesIO(data)).convert("RGB"))


def test_a_step_holds_what_happened() -> None:
    played = episode(
        step(reward=-0.5, value=0.25, key="room 1"), step(reward=2.0, last=True), success=True
    )
    [shown] = replay_of(played).episodes
    first, second = shown.steps
    assert (first.reward, first.return_so_far, first.value) == (-0.5, -0.5, 0.25)
    assert (second.reward, second.return_so_far, second.value) == (2.0, 1.5, None)
    assert shown.total == 1.5
    assert (first.state_key, first.action, first.is_valid) == ("room 1", "go", True)
    assert (first.terminated, second.terminated) == (False, True)
    assert first.finish_reason == "stop"
    assert first.text == "", "the tokens hold it"
    assert "".join(token.text for token in first.tokens) == played.steps[0].completion.text
    assert [part for part, _, _ in first.segments] == ["thought", "action"]


@pytest.mark.parametrize(
    ("trajectory", "outcome"),
    [(won(), "success"), (lost(), "failure"), (unfinished(), "unfinished")],
)
def test_outcomes(trajectory: Trajectory, outcome: str) -> None:
    assert replay_of(trajectory).episodes[0].outcome == outcome


def test_a_seed_keeps_every_digit() -> None:
    """JavaScript's numbers are exact up to 2**53 only."""
    shown = json.loads(replay_of(won(seed=2**62 + 1)).to_json())
    assert shown["episodes"][0]["seed"] == str(2**62 + 1)


def test_numbers_that_are_not_finite_are_missing() -> None:
    odd = replace(
        episode(step(reward=math.nan, value=math.inf), step(reward=1.0, last=True)),
        metrics=(Metric("bad", math.nan), Metric("good", 1 / 3)),
    )
    [shown] = replay_of(odd).episodes
    assert shown.steps[0].reward is None
    assert shown.steps[0].value is None
    assert shown.steps[1].return_so_far is None, "it holds the missing reward"
    assert shown.total is None
    assert shown.metrics == (("bad", None), ("good", 0.3333333))


def test_texts_and_images_that_repeat_are_held_once() -> None:
    same, other = image(10), image(20)
    replay = replay_of(
        episode(step(image=same), step(image=other)),
        episode(step(image=same.copy()), step(image=image(10, size=4), message="And now?")),
    )
    assert replay.texts == ("Where to?", "And now?")
    assert [image.width for image in replay.images] == [8, 8, 4]
    turns = [step.prompt[0] for episode in replay.episodes for step in episode.steps]
    assert [(turn.text, turn.image) for turn in turns] == [(0, 0), (0, 1), (0, 0), (1, 2)]


def test_a_position_of_chess_is_drawn_for_people() -> None:
    fen = "8/8/8/8/8/8/8/K6k w - - 0 1 seen 1 illegal 0"
    replay = replay_of(
        episode(replace(step(), state_key=fen), replace(step(last=True), state_key=fen))
    )
    first, second = replay.episodes[0].steps
    assert first.diagram is not None
    assert first.diagram == second.diagram
    assert replay.texts[first.diagram].splitlines()[7:] == [
        "1 ♔ · · · · · · ♚",
        "  a b c d e f g h",
    ]
    assert static_replay(replay).count('<pre class="diagram">') == 2
    assert replay_of(won()).episodes[0].steps[0].diagram is None


def test_a_drawing_is_shown_pixel_by_pixel() -> None:
    """300 x 300, as the card games draw them: a few flat colors."""
    drawing = np.full((300, 300, 3), 240, dtype=np.uint8)
    drawing[40:90, 60:200] = (180, 20, 30)
    table = ImageTable()
    table.number(drawing)
    [shown] = table.images
    assert shown.address.startswith("data:image/png;base64,")
    assert np.array_equal(pixels(shown.address), drawing)


def test_a_photograph_is_shown_at_a_fraction_of_its_size() -> None:
    """Smooth shades with noise: 150 kB as PNG."""
    rng = np.random.default_rng(0)
    shades = np.linspace(40, 200, 300)[:, None, None] + rng.normal(0, 4, (300, 300, 3))
    photograph = shades.clip(0, 255).astype(np.uint8)
    table = ImageTable()
    table.number(photograph)
    [shown] = table.images
    assert shown.address.startswith("data:image/jpeg;base64,")
    assert len(shown.address) < 60_000
    assert np.abs(pixels(shown.address).astype(int) - photograph).mean() < 5


def test_an_answer_without_tokens_is_shown_as_text() -> None:
    scripted = replace(step(), completion=replace(completion(""), text="go <up>"))
    scripted = replace(
        scripted,
        completion=replace(scripted.completion, token_ids=(), logprobs=(), token_offsets=()),
    )
    replay = replay_of(episode(scripted))
    assert replay.episodes[0].steps[0].text == "go <up>"
    assert Page(static_replay(replay)).all("pre", "completion")[0].text == "go <up>"


def test_hostile_text_reaches_the_script_as_it_was_written() -> None:
    """In every place where a model or an environment may write."""
    odd = replace(episode(step(HOSTILE, key=HOSTILE, message=HOSTILE, is_valid=False)))
    odd = replace(odd, task_type=HOSTILE, metrics=(Metric(HOSTILE, 1.0),))
    page = Page(f"<script>{replay_of(odd).to_json()}</script>")
    assert [element.tag for element in page.elements] == ["script"]
    content = json.loads(page.elements[0].text)
    [shown] = content["episodes"]
    assert content["texts"] == [HOSTILE]
    assert shown["task_type"] == HOSTILE
    assert shown["metrics"] == [[HOSTILE, 1.0]]
    [only] = shown["steps"]
    assert only["state_key"] == only["action"] == HOSTILE
    assert "".join(token[0] for token in only["tokens"]) == HOSTILE


# Without JavaScript


def test_the_opening_episode_is_readable_without_a_script() -> None:
    odd = replace(lost(), first_step=4)
    page = Page(static_replay(replay_of(odd, won())))
    assert page.all("h3")[0].text == "Episode 1: failure, return −1.00"
    items = page.all("li")
    assert [item.attributes["value"] for item in items] == ["5", "6"]
    assert "Where to?" in items[0].text
    assert '{"thoughts": "up", "action": "go"}' in items[0].text
    assert "Invalid response:" in items[0].text
    assert "Reward −1.00, return so far −1.00, value (critic) –." in items[0].text
    assert "Action: go" in items[1].text


def test_what_was_executed_is_told() -> None:
    drawn = replace(step(), action=replace(step().action, is_valid=False, was_randomized=True))
    silent = replace(step(""), action=replace(step("", is_valid=False).action, action=""))
    page = Page(static_replay(replay_of(episode(drawn, silent))))
    told = [element.text for element in page.all("p", "executed")]
    assert told == ["Invalid response; action drawn at random: go", "Invalid response: no action"]


def test_small_images_keep_their_pixels_square() -> None:
    images = [image(size=64), image(size=300)]
    page = Page(static_replay(replay_of(episode(*(step(image=image) for image in images)))))
    assert [image.attributes.get("class") for image in page.all("img")] == ["pixels", None]


def test_every_message_of_a_prompt_is_shown() -> None:
    said = replace(
        step(), prompt=Prompt((Message("system", "Play."), Message("user", "Now?")), (1,))
    )
    page = Page(static_replay(replay_of(episode(said))))
    assert page.all("div", "turn")[0].text == "Play.\nNow?"


def test_hostile_text_is_text_without_a_script_too() -> None:
    odd = episode(step(HOSTILE, message=HOSTILE, is_valid=False))
    page = Page(f"<noscript>{static_replay(replay_of(odd))}</noscript><p>after</p>")
    assert not page.all("script")
    assert not page.all("img")
    shown = visible(HOSTILE)
    assert page.all("pre")[0].text == shown
    assert page.all("pre", "completion")[0].text == shown
    assert "after" not in page.all("noscript")[0].text


def test_an_answer_cut_short_says_so_to_the_script() -> None:
    cut = replace(step(), completion=replace(completion("x"), finish_reason=FinishReason.LENGTH))
    assert replay_of(episode(cut)).episodes[0].steps[0].finish_reason == "length"

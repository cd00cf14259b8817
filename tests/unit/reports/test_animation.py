"""An episode as an animated image: one frame for each step, readable, and as told by the run."""

from dataclasses import replace
from io import BytesIO
from itertools import chain
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from forethought.cli.main import main
from forethought.errors import ConfigError
from forethought.reports import animation, write_gif
from forethought.reports.animation import END_MS, STEP_MS, WIDTH, animate
from forethought.reports.replay import Selected
from forethought.types import Image, Trajectory
from tests.unit.reports.builders import (
    HOSTILE,
    completion,
    episode,
    image,
    lost,
    make_run,
    never_begun,
    step,
    won,
)

RED = np.zeros((8, 8, 3), dtype=np.uint8) + np.array([200, 0, 0], dtype=np.uint8)


def frames(gif: bytes) -> list[Image]:
    with PIL.Image.open(BytesIO(gif)) as file:
        shown: list[Image] = []
        for number in range(getattr(file, "n_frames", 1)):
            file.seek(number)
            shown.append(np.asarray(file.convert("RGB")))
        return shown


def durations(gif: bytes) -> list[int]:
    with PIL.Image.open(BytesIO(gif)) as file:
        shown: list[int] = []
        for number in range(getattr(file, "n_frames", 1)):
            file.seek(number)
            shown.append(file.info["duration"])
        return shown


def written(monkeypatch: pytest.MonkeyPatch, trajectory: Trajectory) -> list[list[str]]:
    """The lines of each frame, above and below the image, as they are drawn."""
    drawn: list[list[str]] = []
    write = animation._write  # pyright: ignore[reportPrivateUsage]

    def remember(draw: object, lines: list[animation._Text], y: int) -> int:  # pyright: ignore[reportPrivateUsage]
        drawn.append([line.text for line in lines])
        return write(draw, lines, y)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(animation, "_write", remember)
    animate(Selected(3, trajectory), "PPO on Rooms")
    return [[*chain(*drawn[n : n + 3])] for n in range(0, len(drawn), 3)]


def test_a_step_is_a_frame() -> None:
    played = episode(*(step(image=image(50 * n)) for n in range(4)), step(last=True))
    gif = animate(Selected(1, played), "PPO on Rooms")
    assert len(frames(gif)) == 5
    assert {frame.shape[1] for frame in frames(gif)} == {WIDTH}
    assert len({frame.shape for frame in frames(gif)}) == 1
    assert durations(gif) == [STEP_MS] * 4 + [END_MS]


def test_the_image_is_drawn_with_square_pixels() -> None:
    """8 x 8 pixels grow by 37, the largest whole factor up to 300."""
    half = RED.copy()
    half[:, 4:] = (0, 0, 200)
    [frame] = frames(animate(Selected(1, episode(step(image=half))), "x"))
    reds = (np.abs(frame.astype(int) - (200, 0, 0)).sum(axis=2) < 30).nonzero()
    assert np.ptp(reds[0]) + 1 == 8 * 37
    assert np.ptp(reds[1]) + 1 == 4 * 37


def test_what_is_beneath_stays_in_its_place() -> None:
    """Under the longest observation, also where another is shorter."""
    short, long = step(message="one"), step(message="one\ntwo\nthree\nfour")
    gif = frames(animate(Selected(1, episode(short, long)), "x"))
    rules = [int((frame == (216, 219, 224)).all(axis=2).sum(axis=1).argmax()) for frame in gif]
    assert rules[0] == rules[1] > 100


def test_a_large_image_shrinks() -> None:
    large = np.zeros((900, 600, 3), dtype=np.uint8)
    [frame] = frames(animate(Selected(1, episode(step(image=large))), "x"))
    dark = (frame.sum(axis=2) == 0).all(axis=1)
    assert 0 < frame.shape[0] < 500
    assert not dark.any(), "narrower than the frame"


def test_thoughts_action_and_reward_are_beneath(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{\n"number": "3",\n"thoughts": "up",\n"action": "go"\n}'
    played = episode(step(text, image=RED, reward=-0.5), step(text, image=RED, reward=2, last=True))
    first, second = written(monkeypatch, played)
    assert first == [
        "PPO on Rooms, episode 3, step 1 of 2",
        '"number": "3",',
        '"thoughts": "up",',
        "action: go",
        "reward −0.50, return −0.50",
    ]
    assert second[-1] == "reward 2.00, return 1.50, the episode ends"


def test_without_an_image_the_text_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "\n".join(f"line {n}" for n in range(40)) + "\n" + "word " * 40
    first, second = written(
        monkeypatch, episode(step(message="You see a door."), step(message=long))
    )
    assert first[1] == "You see a door."
    assert second[1:3] == ["…", "line 31"], "of a long text its end, where the news is"
    assert len(second) < 20
    assert all(len(line) <= 62 for line in second)


def test_a_position_of_chess_is_drawn_as_a_board(monkeypatch: pytest.MonkeyPatch) -> None:
    fen = "8/8/8/8/8/8/8/K6k w - - 0 1 seen 1 illegal 0"
    [shown] = written(monkeypatch, episode(replace(step(), state_key=fen)))
    assert "1 ♔ · · · · · · ♚" in shown


def test_what_was_invalid_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = step("I go\nnowhere", is_valid=False)
    drawn = replace(bad, action=replace(bad.action, action="left", was_randomized=True))
    silent = replace(step(""), completion=completion(""))
    silent = replace(silent, action=replace(silent.action, action="", is_valid=False))
    shown = [lines[-2] for lines in written(monkeypatch, episode(bad, drawn, silent))]
    assert shown == [
        "invalid: I go nowhere",
        "invalid; random action: left",
        "invalid: no action",
    ]


def test_hostile_text_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    [shown] = written(monkeypatch, episode(step(HOSTILE, message=HOSTILE, is_valid=False)))
    assert not set("".join(shown)) & set("\x00\u202e\u2028\ud83d")


def test_the_same_episode_is_the_same_file() -> None:
    assert animate(Selected(1, won()), "x") == animate(Selected(1, won()), "x")


# As typed


def test_the_command_draws_what_the_report_opens_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run", held_out=[won(), lost(), won()])
    assert main(["report", str(run), "--gif"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out == [str(run / "report.html"), str(run / "episode_2.gif")]
    assert len(frames((run / "episode_2.gif").read_bytes())) == 2


def test_the_command_draws_the_episodes_that_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run", held_out=[won(), lost(), won()])
    assert main(["report", str(run), "--gif", "1", "3"]) == 0
    assert sorted(path.name for path in run.glob("*.gif")) == ["episode_1.gif", "episode_3.gif"]
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize(
    ("episodes", "number", "message"),
    [
        pytest.param(None, None, "got a run without episodes to draw", id="no episodes"),
        pytest.param([never_begun()], None, "without an episode that has steps", id="no steps"),
        pytest.param([won(), won()], 3, "--gif is 3 — expected 1 to 2: those of", id="too many"),
        pytest.param([won()], 0, "--gif is 0 — expected 1 to 1", id="they count from 1"),
        pytest.param([never_begun()], 1, "expected an episode with steps", id="a lost one"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(
    tmp_path: Path, episodes: list[Trajectory] | None, number: int | None, message: str
) -> None:
    run = make_run(tmp_path / "run", held_out=episodes)
    with pytest.raises(ConfigError, match=message):
        write_gif(run, number)
    assert not [*run.glob("*.gif")]

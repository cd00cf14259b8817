"""Draws docs/images/before_after.gif: one held-out episode by the SFT policy and by PPO.

    make readme-image                                            # quickstart, then this
    python docs/make_images.py runs/quickstart_sft runs/quickstart
    python docs/make_images.py                                   # draw the stored data again

What is drawn is stored beside the image, in before_after.json. tests/design/test_images.py draws
it again and compares, so that the image is never older than this file; and it compares the
settings of the two runs with those of the quickstart.
"""

import base64
import io
import json
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from forethought.evaluation.results import Evaluation
from forethought.rollouts.store import read_shard
from forethought.runs.run_folder import RunFolder
from forethought.types import Step, Trajectory

IMAGES = Path(__file__).parent / "images"
DATA, DRAWING = IMAGES / "before_after.json", IMAGES / "before_after.gif"

WIDTH, HEIGHT, COLUMN, MARGIN = 880, 300, 424, 16
SCALE = 2
"""Each pixel of the observation is drawn as a square of so many."""
STEPS = 5
"""Frames: the first steps, and the last one."""
FRAME_MS, LAST_FRAME_MS = 1500, 4000
INK, FAINT, PAPER, EDGE = "#1f2328", "#59636e", "#ffffff", "#d1d9e0"
GOOD, BAD = "#1a7f37", "#cf222e"

Json = dict[str, Any]


def main(arguments: list[str]) -> None:
    """Takes the data from two runs, where they are named, and draws."""
    if arguments:
        sft, ppo = (RunFolder(Path(argument)) for argument in arguments)
        DATA.write_text(json.dumps(found_in(sft, ppo), indent=1) + "\n", encoding="utf-8")
    DRAWING.write_bytes(drawn(json.loads(DATA.read_text(encoding="utf-8"))))
    print(DRAWING)


# --- what is drawn ---------------------------------------------------------------------------


def found_in(sft: RunFolder, ppo: RunFolder) -> Json:
    """The first episode that SFT loses and PPO wins in more than one step, and both rates."""
    befores, afters = (read_shard(run.evaluation_episodes_path) for run in (sft, ppo))
    before, after = next(
        (one, other)
        for one, other in zip(befores, afters, strict=True)
        if one.seed == other.seed and not one.success and other.success and len(other.steps) > 1
    )
    return {
        "seed": after.seed,
        "settings": [run.config_path.read_text(encoding="utf-8") for run in (sft, ppo)],
        "policies": [
            _policy("After SFT on random actions", sft, before),
            _policy("After PPO", ppo, after),
        ],
    }


def _policy(title: str, run: RunFolder, episode: Trajectory) -> Json:
    row = Evaluation.from_json(run.evaluation_path.read_text(encoding="utf-8")).policy
    thoughts = row.thoughts
    rates = {
        "success": row.success_rate,
        "numbers read correctly": thoughts.perception_accuracy,
    }
    return {
        "title": title,
        "episodes": row.episodes,
        "rates": {
            name: rate if rate is None or isinstance(rate, float) else rate.share
            for name, rate in rates.items()
        },
        "success": episode.success,
        "return": episode.total_reward,
        "steps": [_step(step) for step in episode.steps],
    }


def _step(step: Step) -> Json:
    buffer = io.BytesIO()
    Pillow.fromarray(step.prompt.images[0]).save(buffer, "PNG", optimize=True)
    return {
        "image": base64.b64encode(buffer.getvalue()).decode("ascii"),
        "response": step.completion.text,
        "action": step.action.action,
        "is_valid": step.action.is_valid,
        "reward": step.reward,
    }


# --- how it is drawn -------------------------------------------------------------------------


def drawn(data: Json) -> bytes:
    """The GIF: one frame for each of the first steps, and one for the last."""
    frames = [_frame(data, number) for number in range(STEPS)]
    file = io.BytesIO()
    frames[0].save(
        file,
        format="GIF",
        save_all=True,
        append_images=frames[1:],
        duration=[FRAME_MS] * (STEPS - 1) + [LAST_FRAME_MS],
        loop=0,
    )
    return file.getvalue()


def _frame(data: Json, number: int) -> Pillow.Image:
    frame = Pillow.new("RGB", (WIDTH, HEIGHT), PAPER)
    draw = ImageDraw.Draw(frame)
    for column, policy in enumerate(data["policies"]):
        _draw_column(frame, draw, policy, number, MARGIN + column * COLUMN)
    return frame.quantize(dither=Pillow.Dither.NONE)


def _draw_column(
    frame: Pillow.Image, draw: ImageDraw.ImageDraw, policy: Json, number: int, x: int
) -> None:
    """One policy at one step; an episode that is over keeps its last step."""
    steps: list[Json] = policy["steps"]
    place = len(steps) - 1 if number == STEPS - 1 else min(number, len(steps) - 1)
    step = steps[place]
    rates = " · ".join(f"{name} {100 * share:.1f} %" for name, share in policy["rates"].items())
    _write(draw, (x, 14), policy["title"], size=17, bold=True)
    _write(draw, (x, 38), rates, FAINT)
    _write(draw, (x, 54), f"on {policy['episodes']} held-out episodes", FAINT)

    seen = Pillow.open(io.BytesIO(base64.b64decode(step["image"])))
    seen = seen.resize((SCALE * seen.width, SCALE * seen.height), Pillow.Resampling.NEAREST)
    frame.paste(seen, (x, 88))
    draw.rectangle((x - 1, 87, x + seen.width, 88 + seen.height), outline=EDGE)
    for line, text in enumerate(_wrapped(str(step["response"]), width=31)):
        _write(draw, (x + seen.width + 14, 88 + 17 * line), text, size=12)

    reward = float(step["reward"])
    color = GOOD if reward > 0 else BAD if reward < 0 else FAINT
    said = f"action {step['action']}" if step["is_valid"] else "invalid"
    below = f"step {place + 1}: {said}, reward {_signed(reward)}"
    _write(draw, (x, 236), below, color, bold=True)
    if place == len(steps) - 1:
        outcome = "success" if policy["success"] else "failure"
        color = GOOD if policy["success"] else BAD
        _write(draw, (x, 258), f"{outcome}, return {_signed(policy['return'])}", color, bold=True)


def _wrapped(text: str, *, width: int) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines():
        lines += textwrap.wrap(line, width, subsequent_indent="  ") or [""]
    return lines


def _signed(number: float) -> str:
    return f"{number:+g}" if number else "0"


def _write(
    draw: ImageDraw.ImageDraw,
    place: tuple[int, int],
    text: str,
    fill: str = INK,
    *,
    size: int = 13,
    bold: bool = False,
) -> None:
    draw.text(place, text, fill=fill, font=_font(size, bold))


@cache
def _font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    """Matplotlib's own, so that every machine draws the same."""
    name = "DejaVuSansMono-Bold.ttf" if bold else "DejaVuSansMono.ttf"
    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name, size)


if __name__ == "__main__":
    main(sys.argv[1:])

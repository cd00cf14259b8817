"""Draws docs/images/before_after.svg: one held-out episode by the SFT policy and by PPO.

    make readme-image                                            # quickstart, then this
    python docs/make_images.py runs/quickstart_sft runs/quickstart
    python docs/make_images.py                                   # draw the stored data again

What is drawn lies beside the image, in before_after.json. tests/design/test_images.py draws it
again and compares, so that the image is never older than this file; and it compares the settings
of the two runs with those of the quickstart.
"""

import base64
import hashlib
import io
import json
import sys
from html import escape
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

from forethought.evaluation.results import Evaluation
from forethought.rollouts.store import read_shard
from forethought.runs.run_folder import RunFolder
from forethought.types import Step, Trajectory

IMAGES = Path(__file__).parent / "images"
DATA, DRAWING = IMAGES / "before_after.json", IMAGES / "before_after.svg"

WIDTH, COLUMN, GAP, MARGIN = 880, 420, 16, 12
ROW, HEAD, PIXELS, LINE = 140, 112, 96, 16
STEPS = 3
"""Drawn of each episode; how many more there are is said."""
INK, FAINT, PAPER, EDGE = "#1f2328", "#59636e", "#ffffff", "#d1d9e0"
GOOD, BAD = "#1a7f37", "#cf222e"

Json = dict[str, Any]


def main(arguments: list[str]) -> None:
    """Takes the data from two runs, where they are named, and draws."""
    if arguments:
        sft, ppo = (RunFolder(Path(argument)) for argument in arguments)
        DATA.write_text(json.dumps(found_in(sft, ppo), indent=1) + "\n", encoding="utf-8")
    DRAWING.write_text(drawn(json.loads(DATA.read_text(encoding="utf-8"))), encoding="utf-8")
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
        "settings": [settings_digest(run.config_path.read_text("utf-8")) for run in (sft, ppo)],
        "policies": [
            _policy("SFT on random choices: it looks and speaks", sft, before),
            _policy("SFT, then PPO: learned from rewards what to do", ppo, after),
        ],
    }


def settings_digest(text: str) -> str:
    """Of a run's config.yaml."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _policy(title: str, run: RunFolder, episode: Trajectory) -> Json:
    row = Evaluation.from_json(run.evaluation_path.read_text(encoding="utf-8")).policy
    thoughts = row.thoughts
    rates = {
        "success": row.success_rate,
        "numbers read": thoughts.perception_accuracy,
        "thought names the action": thoughts.thought_action_consistency,
        "strict JSON": thoughts.strict_format,
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


def drawn(data: Json) -> str:
    """The SVG, as text."""
    rows = max(min(len(policy["steps"]), STEPS) for policy in data["policies"])
    height = HEAD + rows * ROW + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" font-size="14">',
        f'<rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>',
    ]
    for number, policy in enumerate(data["policies"]):
        parts += _column(policy, MARGIN + number * (COLUMN + GAP), height)
    return "\n".join([*parts, "</svg>", ""])


def _column(policy: Json, x: int, height: int) -> list[str]:
    outcome = "success" if policy["success"] else "failure"
    color = GOOD if policy["success"] else BAD
    steps: list[Json] = policy["steps"]
    rates = [_rate(name, share) for name, share in policy["rates"].items()]
    said = f"{policy['episodes']} held-out episodes: {' · '.join(rates[:2])}"
    parts = [
        f'<rect x="{x}" y="{MARGIN}" width="{COLUMN}" height="{height - 2 * MARGIN}" rx="8" '
        f'fill="none" stroke="{EDGE}"/>',
        _text(x + 14, 38, policy["title"], weight="600"),
        _text(x + 14, 58, said, FAINT, size=12),
        _text(x + 14, 75, " · ".join(rates[2:]), FAINT, size=12),
        _text(x + 14, 100, f"this one: {outcome}, return {_signed(policy['return'])}", color),
    ]
    for number, step in enumerate(steps[:STEPS]):
        parts += _drawn_step(step, number, x + 14, HEAD + number * ROW)
    more = len(steps) - STEPS
    if more > 0:
        words = f"… and {more} more step{'s' if more > 1 else ''}"
        parts.append(_text(x + 14, HEAD + STEPS * ROW + 18, words, FAINT))
    return parts


def _signed(number: float) -> str:
    return f"{number:+g}" if number else "0"


def _rate(name: str, share: float | None) -> str:
    return f"{name} –" if share is None else f"{name} {100 * share:.1f} %"


def _drawn_step(step: Json, number: int, x: int, y: int) -> list[str]:
    parts = [
        f'<image x="{x}" y="{y + 4}" width="{PIXELS}" height="{PIXELS}" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{step["image"]}"/>',
        f'<rect x="{x}" y="{y + 4}" width="{PIXELS}" height="{PIXELS}" fill="none" '
        f'stroke="{EDGE}"/>',
    ]
    place = y + 14
    for line in str(step["response"]).splitlines()[:7]:
        parts.append(_text(x + PIXELS + 12, place, line, size=9.5, family="monospace"))
        place += LINE
    reward = step["reward"]
    color = BAD if reward < 0 or not step["is_valid"] else GOOD if reward > 0 else FAINT
    said = f"action {step['action']}" if step["is_valid"] else "invalid"
    words = f"step {number + 1}: {said}, reward {_signed(reward)}"
    return [*parts, _text(x + PIXELS + 12, place + 3, words, color, size=12, weight="600")]


def _text(
    x: float,
    y: float,
    words: str,
    fill: str = INK,
    *,
    size: float = 14,
    weight: str = "400",
    family: str | None = None,
) -> str:
    face = "" if family is None else f' font-family="{family}"'
    return (
        f'<text x="{x}" y="{y}" fill="{fill}" font-size="{size}" font-weight="{weight}"{face} '
        f'xml:space="preserve">{escape(words)}</text>'
    )


if __name__ == "__main__":
    main(sys.argv[1:])

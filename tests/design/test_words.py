"""Words that code and documentation do not use, because a plainer word of the field exists."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORBIDDEN = {
    r"worlds?(?! model)": "environment",
    r"pictures?": "image",
    r"anew": "again, from scratch",
    r"mends?": "fix",
    r"foretells?": "predict",
    r"made from nothing|from nothing": "randomly initialized, from scratch",
    r"imitators?": "SFT policy, BC policy",
    r"slow cop(y|ies)|slow heads": "target network",
    r"whole answers?": "whole completion, utterance-level",
    r"best (tenth|three tenths)": "filtered BC (top 10 %, top 30 %)",
    r"chat-completions protocol": "OpenAI-compatible API",
}
EXEMPT = {
    "src/forethought/configs/migration.py",  # The names of version 1.
    "src/forethought/prompts/react.py",  # A prompt that results were measured with.
}


def files() -> Iterator[Path]:
    """All that a user reads; lab notes keep their history."""
    for folder, patterns in {
        "src": ("*.py",),
        "docs": ("*.md", "*.py"),
        "examples": ("*.py",),
        "configs": ("*.yaml",),
    }.items():
        for pattern in patterns:
            yield from (ROOT / folder).rglob(pattern)
    yield from (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile")


def test_plain_words() -> None:
    found: list[str] = []
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        if name in EXEMPT or "lab_notes" in name:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            for word, plain in FORBIDDEN.items():
                if match := re.search(rf"\b({word})\b", line, re.IGNORECASE):
                    found.append(f"{name}:{number}: {match[0]!r} — say: {plain}")
    assert not found, "\n".join(found)

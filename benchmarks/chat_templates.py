"""What published chat templates demand, and what becomes of each.

    python benchmarks/chat_templates.py FOLDER

FOLDER holds templates as files that end in .jinja: those of a clone of
github.com/ggml-org/llama.cpp lie in models/templates. Each is asked as `Encoder` asks the
template of a model of text, and writes a conversation of all roles. Prints the table of
docs/how_to/chat_templates.md. Nothing is loaded or downloaded.
"""

import sys
from pathlib import Path

from forethought.errors import PolicyError
from forethought.models.chat_template import ChatTemplate, TemplateFacts
from forethought.types import Message

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
CONVERSATION = [
    Message("system", "Be brief."),
    Message("user", "Where?"),
    Message("user", "And when?"),
    Message("assistant", "Here."),
    Message("user", "Go on."),
]


def row(path: Path) -> str:
    try:
        template = ChatTemplate(path.read_text(), TOKENS, prefers_parts=False)
        text = template.render(CONVERSATION)
    except PolicyError as error:
        return f"| {path.stem} | refused: {error} | | | | |"
    missing = [message.text for message in CONVERSATION if message.text not in text]
    assert not missing, (path, missing)
    return f"| {path.stem} | {' | '.join(cells(template.facts))} |"


def cells(facts: TemplateFacts) -> tuple[str, ...]:
    content = "strings" if facts.content == "string" else "parts"
    return (
        content + (", an empty list of tools" if facts.needs_tool_list else ""),
        "its own" if facts.has_system_role else "put before the next user message",
        "as they are" if facts.takes_equal_roles else "joined",
        {"none": ""}.get(facts.thinking, facts.thinking),
        "yes" if facts.keeps_history else "no",
    )


def main() -> None:
    paths = sorted(Path(sys.argv[1]).glob("*.jinja"), key=lambda path: path.stem.lower())
    print("| template | content | system text | equal roles | thinking block | goes on |")
    print("|---|---|---|---|---|---|")
    for path in paths:
        print(row(path))


if __name__ == "__main__":
    main()

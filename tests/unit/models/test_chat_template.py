"""What a chat template demands is found out by asking it; what it cannot write is refused.

The templates here are ours: each has one property of a published one, named beside it.
"""

from collections.abc import Sequence

import pytest

from forethought.errors import PolicyError
from forethought.models.chat_template import ChatTemplate, TemplateFacts
from forethought.types import Message, Role

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}

# A turn of each is `[role: text]`; what differs is how the text is reached.
STRINGS = """\
{%- for m in messages %}{{ '[' + m['role'] + ': ' + m['content'] + ']' }}{% endfor -%}
{%- if add_generation_prompt %}[assistant: {% endif %}"""
PARTS = """\
{%- for m in messages %}[{{ m['role'] }}: {% for part in m['content'] %}
{%- if part['type'] == 'image' %}(image){% else %}{{ part['text'] }}{% endif %}
{%- endfor %}]{% endfor -%}
{%- if add_generation_prompt %}[assistant: {% endif %}"""
EITHER = """\
{%- for m in messages %}[{{ m['role'] }}: {% if m['content'] is string %}{{ m['content'] }}
{%- else %}{% for p in m['content'] %}{{ p['text'] or '(image)' }}{% endfor %}{% endif %}]
{%- endfor -%}
{%- if add_generation_prompt %}[assistant: {% endif %}"""
PRINTS = STRINGS.replace("m['content'] +", "m['content'] | string +")

NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('No systems.') }}{% endif %}"
)
SKIPS_SYSTEM = STRINGS.replace(
    "{%- for m in messages %}", "{%- for m in messages if m['role'] != 'system' %}"
)
STRICT = """\
{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Roles must alternate.') }}{% endif %}{% endfor %}"""
LAST_SYSTEM = """\
{%- set said = messages[0]['content'] if messages[0]['role'] == 'system' else '' -%}
{%- for m in messages if m['role'] != 'system' -%}
{{ '[' + m['role'] + ': ' }}{% if loop.last %}{{ said }}{% endif %}{{ m['content'] + ']' }}
{%- endfor -%}
{%- if add_generation_prompt %}[assistant: {% endif %}"""


def template(source: str, *, prefers_parts: bool = False) -> ChatTemplate:
    return ChatTemplate(source, TOKENS, prefers_parts=prefers_parts)


def conversation(*turns: tuple[Role, str]) -> Sequence[Message]:
    return [Message(role, text) for role, text in turns]


@pytest.mark.parametrize(
    ("source", "prefers_parts", "content"),
    [
        pytest.param(STRINGS, False, "string", id="concatenates, as nearly all models of text"),
        pytest.param(
            PRINTS, False, "string", id="prints what it gets: a list would be seen as one"
        ),
        pytest.param(PARTS, False, "parts", id="walks over parts"),
        pytest.param(EITHER, False, "string", id="takes both, a model of text"),
        pytest.param(EITHER, True, "parts", id="takes both, a model that sees"),
        pytest.param(STRINGS, True, "string", id="of a model that sees, but concatenates"),
    ],
)
def test_strings_or_parts(source: str, prefers_parts: bool, content: str) -> None:
    made = template(source, prefers_parts=prefers_parts)
    assert made.facts.content == content
    assert made.render(conversation(("user", "go"))) == "[user: go][assistant: "


@pytest.mark.parametrize(
    ("source", "facts", "rendered"),
    [
        pytest.param(
            STRINGS,
            TemplateFacts(),
            "[system: be][user: a][user: b][assistant: c][user: d][assistant: ",
            id="takes everything",
        ),
        pytest.param(
            NO_SYSTEM + STRINGS,
            TemplateFacts(has_system_role=False),
            "[user: be\n\na][user: b][assistant: c][user: d][assistant: ",
            id="refuses a system message, as Gemma 2",
        ),
        pytest.param(
            SKIPS_SYSTEM,
            TemplateFacts(has_system_role=False),
            "[user: be\n\na][user: b][assistant: c][user: d][assistant: ",
            id="leaves a system message out without a word",
        ),
        pytest.param(
            STRICT + STRINGS,
            TemplateFacts(has_system_role=False, takes_equal_roles=False),
            "[user: be\n\na\n\nb][assistant: c][user: d][assistant: ",
            id="user and assistant in turn, as the first Mistral",
        ),
        pytest.param(
            LAST_SYSTEM,
            TemplateFacts(has_system_role=False),
            "[user: be\n\na][user: b][assistant: c][user: d][assistant: ",
            id="writes the system text into the last turn, another one each time, as Mistral Nemo",
        ),
    ],
)
def test_roles(source: str, facts: TemplateFacts, rendered: str) -> None:
    made = template(source)
    assert made.facts == facts
    turns: list[tuple[Role, str]] = [
        ("user", "a"),
        ("user", "b"),
        ("assistant", "c"),
        ("user", "d"),
    ]
    assert made.render(conversation(("system", "be"), *turns)) == rendered


def test_a_system_text_alone_is_a_user_message() -> None:
    made = template(NO_SYSTEM + STRINGS)
    assert made.render(conversation(("system", "be"))) == "[user: be][assistant: "


@pytest.mark.parametrize(
    ("tail", "thinking", "prompt"),
    [
        pytest.param("", "none", "[user: go][assistant: ", id="no block"),
        pytest.param(
            "<think>ok</think>", "none", "[user: go][assistant: <think>ok</think>", id="closed"
        ),
        pytest.param(
            "{% if enable_thinking is defined and not enable_thinking %}<think></think>"
            "{% else %}<think>{% endif %}",
            "switched off",
            "[user: go][assistant: <think></think>",
            id="opened unless told otherwise, as Nemotron 3",
        ),
        pytest.param(
            "{{ '<think>\\n' }}",
            "closed",
            "[user: go][assistant: <think>\n\n</think>\n\n",
            id="always opened, as DeepSeek-R1",
        ),
        pytest.param(
            "[THINK]",
            "closed",
            "[user: go][assistant: [THINK]\n[/THINK]\n\n",
            id="another spelling",
        ),
    ],
)
def test_thinking_blocks(tail: str, thinking: str, prompt: str) -> None:
    made = template(STRINGS + tail)
    assert made.facts.thinking == thinking
    assert made.render(conversation(("user", "go"))) == prompt


def test_a_block_that_a_message_speaks_of_is_not_the_prompts() -> None:
    made = template(STRINGS)
    assert made.render(conversation(("user", "say <think>"))) == "[user: say <think>][assistant: "


def test_the_date_is_always_the_same() -> None:
    """A prompt is a function of its messages: a run that is resumed tomorrow goes on as it was."""
    made = template("Today: {{ strftime_now('%d %b %Y') }}." + STRINGS)
    expected = "Today: 26 Jul 2024.[user: go][assistant: "
    assert made.render(conversation(("user", "go"))) == expected


def test_tools_are_none_or_an_empty_list() -> None:
    """Tool sections are left out; some templates walk over the list without looking."""
    section = "{% if tools %}(tools){% endif %}"
    assert "tools" not in template(section + STRINGS).render(conversation(("user", "go")))
    walks = template("{% for tool in tools %}({{ tool }}){% endfor %}" + STRINGS)
    assert walks.facts.needs_tool_list
    assert walks.render(conversation(("user", "go"))) == "[user: go][assistant: "


def test_what_a_template_drops_from_its_history_is_known() -> None:
    """Prompts then do not go on from one another: episodes are stored as several rows."""
    assert template(STRINGS).facts.keeps_history
    drops = "{%- for m in messages if m['role'] != 'assistant' %}"
    assert not template(STRINGS.replace("{%- for m in messages %}", drops)).facts.keeps_history
    assert not template(STRINGS + "<think>").facts.keeps_history


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        pytest.param("{{ raise_exception('Only tools here.') }}", "Only tools here.", id="refuses"),
        pytest.param("{{ functions['a'] }}", "'functions' is undefined", id="asks for more"),
        pytest.param("a fixed text", "its words are missing from the prompt", id="says its own"),
        pytest.param("{{ messages[9]['content'] }}", "no element 9", id="reaches too far"),
        pytest.param("{{ 1 // 0 }}", "division", id="computes nonsense"),
        pytest.param("{{ ().__class__.__base__ }}", "unsafe", id="breaks out of the sandbox"),
        pytest.param("{% if %}", "cannot be read: Expected an expression", id="is no template"),
    ],
)
def test_a_template_that_cannot_be_used(source: str, complaint: str) -> None:
    with pytest.raises(PolicyError, match=complaint) as info:
        template(source)
    assert "\n" not in str(info.value)
    assert " — " in str(info.value)


def test_a_conversation_that_the_template_refuses() -> None:
    made = template(STRICT + STRINGS)
    with pytest.raises(PolicyError) as info:
        made.render(conversation(("assistant", "hello"), ("user", "go")))
    assert str(info.value) == (
        "the model's chat template refuses a conversation of assistant, user: Roles must "
        "alternate. — choose another prompt, or another model"
    )

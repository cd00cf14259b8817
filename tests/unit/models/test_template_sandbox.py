"""A chat template that loops without end, or makes gigabytes, is refused in one line."""

import resource

import pytest

from forethought.errors import PolicyError
from forethought.models import template_sandbox
from forethought.models.chat_template import ChatTemplate
from forethought.types import Message

PLAIN = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"

ENDLESS = [
    pytest.param(
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        id="nested loops that write nothing",
    ),
    pytest.param(
        "{% for a in range(99999) %}{% for b in range(99999) if b < 0 %}{% endfor %}{% endfor %}",
        id="nested loops whose body is never reached",
    ),
    pytest.param(
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}"
        "{{ m(60) }}",
        id="a macro that calls itself twice",
    ),
]
GROW = "{% set n = namespace(x='aa') %}{% for i in range(60) %}"
HUGE = [
    pytest.param("{{ 'a' * 10 ** 10 }}", id="one product"),
    pytest.param("{{ [messages] * 10 ** 9 }}", id="a list times a number"),
    pytest.param("{% for a in range(99999) %}{{ 'a' * 9999 }}{% endfor %}", id="much output"),
    pytest.param(
        GROW + "{% set n.x = n.x ~ n.x %}{% endfor %}",
        id="a text that doubles by ~",
    ),
    pytest.param(
        GROW + "{% set n.x = n.x + n.x %}{% endfor %}",
        id="a text that doubles by +",
    ),
    pytest.param(
        GROW + "{% set y %}{{ n.x }}{{ n.x }}{% endset %}{% set n.x = y %}{% endfor %}",
        id="a text that doubles in a block",
    ),
    pytest.param(
        GROW + "{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
        id="a list that holds itself twice",
    ),
    pytest.param(
        "{% set a = namespace() %}{% set b = namespace() %}{% set a.x = [b, b] %}"
        "{% set b.x = [a, a] %}{{ [a] | string }}",
        id="names that hold each other",
    ),
    pytest.param("{{ 'a' | center(10 ** 10) }}", id="a filter with a width"),
    pytest.param("{{ 'a'.ljust(10 ** 10) }}", id="a method with a width"),
    pytest.param("{{ '%10000000000d' % 1 }}", id="a width in a format"),
    pytest.param("{{ '{:10000000000}'.format(1) }}", id="a width in another format"),
    pytest.param("{{ '%10000000000d' | format(1) }}", id="a width in the filter's format"),
    pytest.param("{{ 10 ** 10 ** 10 }}", id="a number"),
    pytest.param("{{ ('a' * 999999).replace('a', 'a' * 999999) }}", id="a replacement"),
    pytest.param("{{ range(99999) | join('a' * 999999) }}", id="a separator"),
    pytest.param(
        "{{ range(99999) | map('replace', '', 'a' * 9999) | join }}", id="a filter for each"
    ),
    pytest.param("{{ lipsum(n=99999) }}", id="the made-up text of Jinja"),
    pytest.param("{# " + "a" * 2**20 + " #}", id="its own source"),
]


def refusal(source: str) -> str:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(PolicyError) as info:
        ChatTemplate(source + PLAIN, {}, prefers_parts=False)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 2**20  # KiB: a gigabyte
    assert "\n" not in str(info.value)
    return str(info.value)


@pytest.mark.parametrize("source", ENDLESS)
def test_no_end(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_sandbox, "CPU_S", 0.1)
    assert "did not end within 0.1 s" in refusal(source)


@pytest.mark.parametrize("source", HUGE)
def test_no_measure(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_sandbox, "CPU_S", 0.5)
    line = refusal(source)
    assert "more" in line or "'lipsum' is undefined" in line or "did not end" in line


def test_a_macro_without_a_bottom() -> None:
    assert "recursion" in refusal("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")


def test_what_happens_at_one_word_alone() -> None:
    """The template behaves while it is asked what it takes."""
    trap = "{% if 'open' in messages[0]['content'] %}{{ 'a' * 10 ** 10 }}{% endif %}"
    template = ChatTemplate(trap + PLAIN, {}, prefers_parts=False)
    assert template.render([Message("user", "shut")]) == "user: shut\n"
    with pytest.raises(PolicyError, match="goes beyond its bounds: it makes something of"):
        template.render([Message("user", "open")])


def test_a_long_conversation_is_within_the_bounds() -> None:
    """A template that joins all messages into one text, as Reka's does."""
    source = (
        "{% set n = namespace(x='') %}{% for m in messages %}"
        "{% set n.x = n.x ~ m['role'] ~ ': ' ~ m['content'] | trim ~ '\n' %}{% endfor %}{{ n.x }}"
    )
    template = ChatTemplate(source, {}, prefers_parts=False)
    messages = [Message("user" if i % 2 == 0 else "assistant", "word " * 500) for i in range(200)]
    assert len(template.render(messages)) > 200 * 2499
    assert len(template.render([Message("user", "word " * 1_000_000)])) > 4_999_000

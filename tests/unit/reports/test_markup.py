"""What a model wrote comes out as text, through either door."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.reports.markup import embed_json, escape
from tests.unit.reports.builders import HOSTILE, Page

# Whatever a JSON escape of a model can name: half surrogate pairs as well.
anything = st.text(st.characters(exclude_categories=()))


def test_escape_by_hand() -> None:
    assert escape("<b a='1' c=\"2\">&amp;") == "&lt;b a=&#x27;1&#x27; c=&quot;2&quot;&gt;&amp;amp;"


def test_what_a_page_cannot_show_is_written_out() -> None:
    assert escape("a\ud83db\udc00") == "a\\ud83db\\udc00"
    assert escape("\x1b[31m\x00\u202e\r\n") == "\\x1b[31m\\x00\\u202e\n"
    assert escape("\U0001f469") == "\U0001f469"


@given(anything)
def test_escaped_text_is_no_markup_and_can_be_written(text: str) -> None:
    escaped = escape(text)
    escaped.encode("utf-8")
    assert not set("<>\"'") & set(escaped)


@given(anything)
def test_embedded_text_comes_back_equal(text: str) -> None:
    """Equal to the last half surrogate, from ASCII without a character that HTML minds.

    Two halves that follow each other are one character to JSON, as to JavaScript.
    """
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    embedded = embed_json({"text": text})
    assert embedded.isascii()
    assert not set("<>&") & set(embedded)
    assert json.loads(embedded) == {"text": joined}


def test_embedded_text_does_not_end_its_script() -> None:
    page = Page(f'<script type="application/json">{embed_json([HOSTILE])}</script><p>after</p>')
    assert [element.tag for element in page.elements] == ["script", "p"]
    assert json.loads(page.elements[0].text) == [HOSTILE]


def test_a_number_that_json_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        embed_json([float("nan")])

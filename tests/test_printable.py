"""Control characters are shown as escape sequences; all other text is unchanged."""

import pytest

from emgpr.printable import escape_controls


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[2Jsand", "\\x1b[2Jsand"),
        ("a\rb\x07\x7f\x9b", "a\\rb\\x07\\x7f\\x9b"),
        ("a\u202eb\u2028\u2066", "a\\u202eb\\u2028\\u2066"),
        ("\udc80", "\\udc80"),
    ],
)
def test_control_characters_are_escaped(text, expected):
    assert escape_controls(text) == expected


@pytest.mark.parametrize(
    "text", ["Zn (mg/kg)\n\tµ", "12\u202f345 −5 °C", "نام\u200cستون", "土", ""]
)
def test_other_text_is_unchanged(text):
    assert escape_controls(text) is text

"""Text that is safe to print: control characters are shown as escape sequences.

Names of columns can contain control characters, which would change colours, move the cursor or
reverse the direction of text in a terminal.
"""

import re

# Control characters except tab and line feed; line separators; characters that change the
# direction of text; and surrogates, which cannot be encoded.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escape_controls(text: str) -> str:
    r"""Replace control characters with their escape sequences; return other text as it is.

    >>> escape_controls("Cd \x1b[31m")
    'Cd \\x1b[31m'
    """
    if not _CONTROL.search(text):
        return text  # without a copy, which would lose the class of a DataWarning
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)

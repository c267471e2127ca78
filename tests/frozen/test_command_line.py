"""Every command ends, writes and prints as at commit 981b750; texts are not compared."""

import json

import pytest

from .commands import COMMANDS, outcome, prefixed, prepare
from .storage import DATA, REFITTED, differences, of_refitted, read

pytestmark = pytest.mark.slow

UNFITTED = 1e-6  # tolerance where nothing is learned; a GeoTIFF has 32 bits
SIX_DIGITS = 1e-5  # of predictions in text files, which had all digits
# The joint optimisation of the default fit ends at one of two points near the maximum, depending on
# the kernels that the BLAS library has for the processor: an error of 0.4061 or 0.4101.
PRINTED = {"demo": 3e-2}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_does_what_it_did(name, tmp_path):
    command = COMMANDS[name]
    for package in command.needs:
        pytest.importorskip(package)
    prepare(tmp_path)
    tolerance = REFITTED if command.fits else UNFITTED
    tolerance = SIX_DIGITS if name.startswith("predict") else tolerance
    found = dict(prefixed(name, outcome(command, tmp_path)))
    frozen = {**read(DATA / "commands.npz"), **of_refitted("commands")}
    printed = f"{name}: printed"
    frozen = {what: one for what, one in frozen.items() if what.startswith(f"{name}: ")}
    assert differences(found, frozen, tolerance, lambda what: what != printed) == []
    tolerance = PRINTED.get(name, tolerance)
    assert_printed(json.loads(found[printed]), json.loads(frozen[printed]), tolerance)


def assert_printed(found: list[list[str]], frozen: list[list[str]], tolerance: float) -> None:
    """The same rows of numbers, but for one unit of the last digit that is printed."""
    assert [len(row) for row in found] == [len(row) for row in frozen]
    for new, old in zip(found, frozen, strict=True):
        for one, other in zip(new, old, strict=True):
            allowed = tolerance * abs(float(other)) + 1.01 * last_digit(other)
            assert abs(float(one) - float(other)) <= allowed, (new, old)


def last_digit(number: str) -> float:
    """What the last decimal is worth; a whole number is meant exactly.

    >>> last_digit("0.25"), last_digit("56"), last_digit("1.5e-03")
    (0.01, 0.0, 0.0001)
    """
    digits, _, exponent = number.lower().partition("e")
    decimals = digits.partition(".")[2]
    return float(f"1e{int(exponent or 0) - len(decimals)}") if decimals else 0.0

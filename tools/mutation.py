"""Measure the share of small code changes that the tests detect, on a sample of mutmut's mutants.

Usage: `make mutation SAMPLE=150 SEED=0 ONLY=covariance`. A mutant is detected if a test fails, if
an array does not have the shape given in a signature, or if the tests do not terminate. The script
lists the mutants that were not detected, which `mutmut show NAME` displays. It fails if less than
86% are detected.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

PACKAGES = ("covariance", "ensemble", "prediction", "weights")
MIN_SHARE = 0.86  # minimum share of mutants that must be detected
# mutmut's exit codes for failed tests, timeouts and crashes.
DETECTED = {1, 3, 36, -24, 24, 152, 255, -11, -9}
SMALLEST = "emgpr.ensemble.partition.*"


def mutmut(*names: str) -> None:
    """Create the mutants if they do not exist, and test the mutants with these names."""
    command = [Path(sys.executable).with_name("mutmut"), "run", "--max-children", "1", *names]
    subprocess.run(command, check=True, stdout=sys.stderr)


def codes(package: str) -> dict[str, int | None]:
    """Return the exit code of the tests for each mutant, or None if it was not tested."""
    by_name = {}
    for path in Path("mutants/src/emgpr", package).glob("*.meta"):
        by_name |= json.loads(path.read_text())["exit_code_by_key"]
    return by_name


def main() -> None:
    """Test a random sample of mutants, and report the share that is detected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    options = parser.parse_args()
    packages = options.packages

    mutmut(SMALLEST)
    mutants = sorted(name for package in packages for name in codes(package))
    drawn = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
    mutmut(*drawn)

    detected: Counter[str] = Counter()
    tested: Counter[str] = Counter()
    for package in packages:
        exit_codes = codes(package)
        for name in filter(exit_codes.__contains__, drawn):
            tested[package] += 1
            code = exit_codes[name]
            if code in DETECTED:
                detected[package] += 1
            else:
                print("not detected:" if code == 0 else f"not run ({code}):", name)
    for package in packages:
        print(f"{package}: {detected[package]} of {tested[package]} detected")
    share = detected.total() / tested.total()
    print(
        f"{share:.1%} of {tested.total()} mutants were detected, drawn from {len(mutants)} with "
        f"seed {options.seed}."
    )
    if share < MIN_SHARE:
        sys.exit(f"At least {MIN_SHARE:.0%} must be detected.")


if __name__ == "__main__":
    main()

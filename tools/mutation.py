"""How many small changes to the code the tests notice: mutmut, on a sample of all that it makes.

`make mutation SAMPLE=150 SEED=0 ONLY=covariance`. A change is noticed if a test fails, or an array
has a shape other than its signature says, or it never ends. What went unnoticed is listed; see it
with `mutmut show NAME`. Fails under 85%.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

PACKAGES = ("covariance", "ensemble", "weights")
BAR = 0.85
# mutmut's exit codes: a test failed, it did not end, it crashed
NOTICED = {1, 3, 36, -24, 24, 152, 255, -11, -9}
SMALLEST = "emgpr.ensemble.partition.*"


def mutmut(*names: str) -> None:
    """Make the mutants if they are not there, and try some."""
    command = [Path(sys.executable).with_name("mutmut"), "run", "--max-children", "1", *names]
    subprocess.run(command, check=True, stdout=sys.stderr)


def codes(package: str) -> dict[str, int | None]:
    """How the tests of each mutant ended, None if they did not run."""
    found = {}
    for path in Path("mutants/src/emgpr", package).glob("*.meta"):
        found |= json.loads(path.read_text())["exit_code_by_key"]
    return found


def main() -> None:
    """Draw, try, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    options = parser.parse_args()
    packages = options.packages

    mutmut(SMALLEST)
    everything = sorted(name for package in packages for name in codes(package))
    drawn = random.Random(options.seed).sample(everything, min(options.sample, len(everything)))
    mutmut(*drawn)

    noticed: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for package in packages:
        ends = codes(package)
        for name in filter(ends.__contains__, drawn):
            tried[package] += 1
            if ends[name] in NOTICED:
                noticed[package] += 1
            else:
                print("unnoticed:" if ends[name] == 0 else f"not tried ({ends[name]}):", name)
    for package in packages:
        print(f"{package}: {noticed[package]} of {tried[package]} noticed")
    share = noticed.total() / tried.total()
    print(f"{share:.1%} of {tried.total()}, drawn from {len(everything)} with seed {options.seed}")
    if share < BAR:
        sys.exit(f"under {BAR:.0%}")


if __name__ == "__main__":
    main()

"""The systems of Table 1 on Jura with ten seeds: errors, coverage, and shares of noise.

Each system is fitted with the settings of `emgpr reproduce jura`. Cadmium is withheld at the 100
validation sites, where nickel and zinc are known. The table shows the lowest and the highest value
over the seeds of

- the mean absolute error for cadmium,
- the share of cadmium readings inside their 95% intervals,
- the share of noise in the variance of the metal for which it is largest, which is 1 if all of the
  variation of that metal is attributed to noise.

Systems without random starting points are fitted once. Run `python -m benchmarks.seeds`, or
`python -m benchmarks.seeds "GPRN (VB)" --seeds 3` for less work.
"""

import argparse
import warnings
from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from emgpr.datasets import jura_table
from emgpr.experiments.fitting import Settings, build
from emgpr.experiments.jura import METALS, TABLE_1, has_restarts

Array = np.ndarray


def scores(settings: Settings, seed: int) -> Array:
    """Return the error, the coverage and the largest share of noise."""
    jura = jura_table(METALS, withheld="Cd")
    truth, new = jura.truth["Cd"].to_numpy(), jura.X[jura.test]
    model = build(settings, seed)
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        model.fit(jura.X, jura.Y)
        predicted = np.asarray(model.predict(new))[:, 0]
        low, high = np.asarray(model.predict_quantiles(new, [0.025, 0.975]))[:, :, 0]
    inside = (low <= truth) & (truth <= high)
    noise = model.variance_shares_["noise"].max()
    return np.array([np.abs(predicted - truth).mean(), inside.mean(), noise])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each system."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.seeds", description=__doc__)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help="as in Table 1; default: all")
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args(arguments)
    unknown = sorted(set(args.systems) - set(TABLE_1))
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; the systems are {', '.join(TABLE_1)}")
    print(
        "| system | seeds | error (mg/kg) | inside 95% intervals | largest share of noise |\n"
        "|:--|--:|--:|--:|--:|",
        flush=True,
    )
    for name in args.systems or TABLE_1:
        settings = TABLE_1[name]
        seeds = range(args.seeds if has_restarts(settings) else 1)
        found = np.array([scores(settings, seed) for seed in seeds])
        (low, *lows), (high, *highs) = found.min(axis=0), found.max(axis=0)
        others = " | ".join(f"{a:.0%} to {b:.0%}" for a, b in zip(lows, highs, strict=True))
        print(f"| {name} | {len(seeds)} | {low:.4f} to {high:.4f} | {others} |", flush=True)


if __name__ == "__main__":
    main()

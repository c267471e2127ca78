"""Write model files of the present format version and their predictions, for later versions.

PYTHONPATH=src python -m tests.model_files.write_fixtures
"""

import json
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, OnePassGP
from emgpr.datasets import jura_table
from emgpr.model_files.files import VERSION

FIXTURES = Path(__file__).parent / "fixtures"


def main() -> None:
    jura = jura_table()
    models = {
        "jura": EMGPR.paper(output_transform="log", random_state=0).fit(jura.X, jura.Y),
        "jura-sums": OnePassGP(
            RBF(1.5, "fixed"), n_functions=41, n_start=100, n_restarts=2, tolerance=0.5,
            output_transform=["log", "yeo-johnson", "normal-score"], random_state=0,
        ).fit(jura.X, jura.Y),
    }  # fmt: skip
    sites = jura.X.iloc[np.flatnonzero(jura.test)[::25]]
    for name, model in models.items():
        path = FIXTURES / f"{name}-format-{VERSION}.emgpr"
        model.save(path)
        median, std = model.predict(sites, return_std=True)
        kept = {
            "sites": sites.to_numpy().tolist(),
            "median": median.tolist(),
            "std": std.tolist(),
            "quantiles": model.predict_quantiles(sites, 0.9).tolist(),
        }
        path.with_suffix(".json").write_text(json.dumps(kept) + "\n", "utf8")


if __name__ == "__main__":
    main()

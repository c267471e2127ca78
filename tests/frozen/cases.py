"""The frozen cases: a table, an estimator, its settings, and what the fitted model is asked."""

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.preprocessing import FunctionTransformer, PowerTransformer

import emgpr
from emgpr.latents import DTC, FITC, PITC, VFE, PoE, Variogram

SHORT = ("predict", "site", "fitted")
BRIEF = (*SHORT, "known", "sample")
FULL = (*BRIEF, "latents", "output")
WIDE = (
    *FULL, "known distributions", "sample known", "frame", "variograms", "block", "transfer",
)  # fmt: skip
RULE = ("predict", "known", "sample", "site", "output")
SUMS = ("predict", "known", "known distributions", "frame", "sample", "fitted")
MAP = ("grid", "dataset")


def undrawn(ask: tuple[str, ...]) -> tuple[str, ...]:
    """Without draws: of a covariance that is nearly singular, they depend on the BLAS."""
    return tuple(asked for asked in ask if not asked.startswith("sample"))


RULES = ("mean", "average", "poe", "gpoe", "bcm", "rbcm", "grbcm", "barycenter")
SINH = FunctionTransformer(np.arcsinh, np.sinh)


PLAIN = {"kernel": None, "output_transform": None}  # the defaults of the family in 981b750
JOINT = PLAIN | {"prior": None}


@dataclass(frozen=True)
class Case:
    """`output_transform` in the settings is passed as `transform` to a version that has that."""

    table: str
    estimator: str
    settings: dict[str, Any] = field(default_factory=dict)
    ask: tuple[str, ...] = FULL
    needs: tuple[str, ...] = ()  # packages
    classes: tuple[Any, ...] = ()  # what `emgpr.load` has to be given

    @property
    def one_pass(self) -> bool:
        return self.estimator == "OnePassGP"


def surest(means: np.ndarray, covs: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A rule of the user's: at each site, the member of the least total variance."""
    best = np.trace(covs, axis1=2, axis2=3).argmin(axis=0)
    site = np.arange(len(best))
    return means[best, site], covs[best, site]


def build(case: Case) -> Any:
    """The estimator of a case, not fitted."""
    name, _, method = case.estimator.partition(".")
    cls = getattr(emgpr, name)
    make = getattr(cls, method) if method else cls
    settings = {"random_state": 0, **case.settings}
    if "output_transform" in settings and "output_transform" not in parameters(cls):
        settings["transform"] = settings.pop("output_transform")
    return make(**settings)


def parameters(cls: type) -> set[str]:
    return set(inspect.signature(cls).parameters)


def emgpr_case(table: str, ask: tuple[str, ...] = FULL, **settings: Any) -> Case:
    return Case(table, "EMGPR", settings, ask)


def quick(kernel: Any, table: str, ask: tuple[str, ...] = FULL, **settings: Any) -> Case:
    """The joint ascent with given kernels and no transform."""
    return emgpr_case(table, ask, kernel=kernel, output_transform=None, **settings)


def paper(table: str, ask: tuple[str, ...] = FULL, **settings: Any) -> Case:
    return Case(table, "EMGPR.paper", settings, ask)


DEFAULTS = {
    "defaults": Case("jura", "EMGPR", {}, (*undrawn(WIDE), *MAP), ("xarray",)),
    "defaults-of-few-sites": emgpr_case("few", undrawn(FULL)),
    "defaults-with-gaps": emgpr_case("gaps", WIDE),
    "defaults-of-rank-2": emgpr_case("plenty", WIDE),
    "defaults-of-four-metals": emgpr_case("metals", BRIEF),
    "defaults-of-a-vector": emgpr_case("vector", WIDE),
    "defaults-of-one-column": emgpr_case("single", BRIEF),
    "defaults-of-three-inputs": emgpr_case("cube"),
    "defaults-with-a-constant": emgpr_case("constant"),
    "defaults-of-repeated-places": emgpr_case("repeated"),
    "paper": paper("smooth", WIDE),
    "paper-of-jura": paper("jura", undrawn(WIDE), output_transform="log"),
    "paper-of-a-vector": paper("vector", BRIEF),
}
MODEL = {
    "kernel-single": quick(Matern(nu=1.5), "gaps"),
    "kernel-list": quick([RBF(), Matern(nu=0.5), RationalQuadratic()], "smooth", undrawn(FULL)),
    "kernel-per-column": quick(RBF([1.0, 1.0, 1.0]), "cube"),
    "kernel-sum": quick(
        0.7 * RBF(0.3) + ConstantKernel(0.3) * Matern(nu=2.5) + WhiteKernel(0.1, (1e-3, 1)), "gaps"
    ),
    "kernel-auto-without-refining": emgpr_case(
        "gaps", kernel="auto", refine=0, transfer="full", output_transform=None
    ),
    "latents-fewer": quick(None, "gaps", undrawn(FULL), n_latents=2),
    "latents-auto": quick(Matern(nu=1.5), "shared", undrawn(FULL), n_latents="auto"),
    "latents-more": quick([RBF(), RBF(2.0), Matern(), Matern(nu=0.5)], "apart", n_latents=4),
    "rank-1": quick(None, "joined_noise", rank=1),
    "rank-3": quick(None, "smooth", rank=3, n_latents=1),
    "noise-independent": quick(None, "joined_noise", noise="independent"),
    "noise-correlated": quick(None, "joined_noise", WIDE, noise="correlated", transfer="full"),
    "noise-correlated-without-prior": quick(
        None,
        "joined_noise",
        undrawn(FULL),
        noise="correlated",
        prior=None,
        n_latents=2,
        transfer="full",
    ),
    "prior-none": quick(None, "pair", prior=None, transfer="full"),
    "refine-0": quick(None, "jura", undrawn(FULL), refine=0, transfer="full"),
    "refine-2": quick(None, "gaps", refine=2),
    "refine-joint-of-members": quick(
        Matern(nu=1.5),
        "apart",
        undrawn(FULL),
        refine="joint",
        batch_size=30,
        n_latents=2,
        transfer="full",
    ),
    "refine-2-of-members": quick(None, "apart", refine=2, batch_size=20, transfer="full"),
    "transfer-safe": quick(None, "apart", WIDE, transfer="safe"),
    "transfer-full": quick(None, "apart", transfer="full"),
    "transfer-safe-of-members": paper("apart", transfer="safe", batch_size=20),
    "transfer-safe-of-batches": paper(
        "apart",
        WIDE,
        transfer="safe",
        batch_size=20,
        conditioning="batch",
        combine="rbcm",
        partition="stratified",
    ),
    "transfer-safe-of-neighbours": quick(None, "apart", conditioning=6),
    "as-they-are": quick(None, "pair", normalize_y=False, transfer="full"),
}
ENSEMBLES = {
    **{
        f"partition-{how}": paper("gaps", partition=how, batch_size=11, combine="mean")
        for how in ("stratified", "random", "strided")
    },
    "members-at-most": paper("gaps", batch_size=9, n_members=2, partition="random"),
    **{
        f"combine-{rule}-from-{how}": paper(
            "pair", RULE, combine=rule, conditioning=how, batch_size=11
        )
        for rule in RULES
        for how in ("all", "batch", 5)
    },
    "combine-own-rule": Case(
        "pair", "EMGPR.paper", {"combine": surest, "batch_size": 11}, RULE, classes=(surest,)
    ),
    "neighbours-of-one-member": quick(None, "joined_noise", conditioning=4),
}
LEARNERS = {
    f"learner-{name}": paper("smooth", SHORT, latent_learner=learner)
    for name, learner in {
        "poe": PoE(batch_size=14, n_batches=2),
        "dtc": DTC(9),
        "fitc": FITC(9),
        "pitc": PITC(9, block_size=12),
        "vfe": VFE(9),
        "variogram": Variogram(),
        "vfe-by-name": "vfe",
        "borrowed": GaussianProcessRegressor(RBF() + WhiteKernel(0.1)),
        "borrowed-for-each": [GaussianProcessRegressor(alpha=0.1)] * 3,
    }.items()
} | {
    "learner-fitc-with-gaps": quick(None, "apart", latent_learner=FITC(8)),
    "learner-poe-with-auto": emgpr_case("skewed", BRIEF, latent_learner=PoE(15, 2)),
}
TRANSFORMS = (
    {
        f"transform-{name}": emgpr_case("skewed", kernel=None, rank=1, output_transform=transform)
        for name, transform in {
            "none": None,
            "log": "log",
            "function-transformer": SINH,
            "list": ["log", None, "yeo-johnson"],
            "dict": {"Pb": "log", "Zn": "normal-score"},
            "auto": "auto",
        }.items()
    }
    | {
        # The joint ascent ends in flat directions with these.
        f"transform-{name}": emgpr_case("skewed", kernel=None, refine=2, output_transform=transform)
        for name, transform in {
            "yeo-johnson": "yeo-johnson",
            "normal-score": "normal-score",
            "power-transformer": PowerTransformer(),
        }.items()
    }
    | {
        "transform-log-of-members": paper(
            "skewed", output_transform="log", combine="mean", batch_size=14
        ),
        "transform-normal-score-average": paper("skewed", output_transform="normal-score"),
    }
)
PLACES = {
    "globe": Case(
        "swath", "EMGPR.paper", {"crs": "EPSG:4326"}, (*WIDE, *MAP), ("pyproj", "xarray")
    ),
    "globe-joint": Case(
        "swath",
        "EMGPR",
        {"crs": "EPSG:4326", "kernel": Matern(), "output_transform": None},
        undrawn(BRIEF),
        ("pyproj",),
    ),
    "projected": Case(
        "jura",
        "IndependentGP",
        PLAIN | {"crs": "EPSG:32632"},
        (*SHORT, "grid"),
        ("pyproj", "xarray"),
    ),
    "torch": Case("joined_noise", "EMGPR", {"device": "torch", "kernel": None}, FULL, ("torch",)),
    "torch-paper": Case("gaps", "EMGPR.paper", {"device": "torch"}, BRIEF, ("torch",)),
}
FAMILY = {  # with the defaults of 981b750
    "independent": Case("gaps", "IndependentGP", PLAIN, WIDE),
    "independent-auto": Case(
        "jura", "IndependentGP", {"kernel": "auto", "output_transform": "auto"}
    ),
    "icm": Case("metals", "ICM", JOINT | {"output_transform": "log"}, undrawn(WIDE)),
    "icm-with-gaps": Case("gaps", "ICM", JOINT | {"rank": 2, "kernel": Matern(nu=2.5)}),
    "icm-of-neighbours": Case(
        "jura", "ICM", JOINT | {"conditioning": 5, "output_transform": "log"}, undrawn(RULE)
    ),
    "slfm": Case("smooth", "SLFM", JOINT, undrawn(WIDE)),
    "slfm-with-gaps": Case("gaps", "SLFM", JOINT | {"n_latents": 1}, undrawn(BRIEF)),
    "lmc": Case("gaps", "LMC", JOINT | {"n_latents": 2, "rank": 2}, undrawn(WIDE)),
    "lmc-of-jura": Case(
        "jura", "LMC", {"prior": None, "output_transform": "log", "kernel": Matern(nu=1.5)}, BRIEF
    ),
}
ONE_PASS = {
    f"one-pass-{name}": Case(table, "OnePassGP", {"n_start": 80, **settings}, SUMS)
    for name, (table, settings) in {
        "complete": ("smooth", {}),
        "with-gaps": ("many", {}),
        "independent-noise": ("many", {"noise": "independent", "n_latents": 1, "rank": 1}),
        "kernels": (
            "many",
            {"kernel": [RBF(), Matern(nu=2.5)], "tolerance": 0.1, "n_functions": 60},
        ),
        "log-in-a-box": (
            "many_framed",
            {
                "output_transform": "log",
                "box": ([-0.1, -0.1], [1.1, 1.2]),
                "n_functions": 90,
                "tolerance": 0.05,
            },
        ),
        "vector": ("vector", {}),
    }.items()
}
CASES: dict[str, Case] = (
    DEFAULTS | MODEL | ENSEMBLES | LEARNERS | TRANSFORMS | PLACES | FAMILY | ONE_PASS
)

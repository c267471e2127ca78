"""The scikit-learn estimators: `EMGPR`, its special cases, and other models of several outputs.

To add a model, write a subclass of `GPRegressor` in a new file and add it to `MODELS`.
"""

from emgpr.comparison import ApproximationReport, Comparison, compare
from emgpr.cross_validation import CrossValidation, TransferReport, spatial_blocks
from emgpr.ensemble import EnsembleWarning
from emgpr.estimators.base import GPRegressor
from emgpr.estimators.cmogp import CMOGP
from emgpr.estimators.cokriging import CoKriging
from emgpr.estimators.conditional import ConditionalGP
from emgpr.estimators.emgpr import EMGPR
from emgpr.estimators.gprn import GPRN
from emgpr.estimators.multi_output import MultiOutputGP
from emgpr.estimators.one_pass import OnePassGP
from emgpr.estimators.readings import ReadingsGP
from emgpr.estimators.special_cases import ICM, LMC, SLFM, IndependentGP
from emgpr.model_files.files import OwnClasses, load_model
from emgpr.persistence import ModelFileError, PathLike

__all__ = [
    "CMOGP",
    "EMGPR",
    "GPRN",
    "ICM",
    "LMC",
    "MODELS",
    "SLFM",
    "ApproximationReport",
    "CoKriging",
    "Comparison",
    "ConditionalGP",
    "CrossValidation",
    "EnsembleWarning",
    "GPRegressor",
    "IndependentGP",
    "ModelFileError",
    "MultiOutputGP",
    "OnePassGP",
    "ReadingsGP",
    "TransferReport",
    "compare",
    "load",
    "spatial_blocks",
]

MODELS: dict[str, type[GPRegressor]] = {
    model.__name__: model
    for model in (
        EMGPR, ICM, LMC, SLFM, IndependentGP, ConditionalGP, CMOGP, GPRN, CoKriging, OnePassGP,
    )
}  # fmt: skip


def load(path: PathLike, *, classes: OwnClasses = ()) -> GPRegressor:
    """Load a fitted model of any class from a file; see `EMGPR.load`.

    >>> from tempfile import TemporaryDirectory
    >>> import emgpr
    >>> from emgpr.datasets import jura_table
    >>> jura = jura_table()
    >>> model = EMGPR.paper(output_transform="log", n_members=3).fit(jura.X, jura.Y)
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/jura.emgpr")
    ...     again = emgpr.load(f"{folder}/jura.emgpr")
    >>> type(again).__name__, again.n_members, again.output_names_
    ('EMGPR', 3, ['Cd', 'Ni', 'Zn'])
    """
    subclasses = {
        value.__name__: value
        for value in classes
        if isinstance(value, type) and issubclass(value, GPRegressor)
    }
    return load_model(path, {**subclasses, **MODELS}, classes)

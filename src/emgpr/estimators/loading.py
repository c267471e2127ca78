"""Whichever estimator a file holds."""

from emgpr.estimators.base import MultiOutputGP
from emgpr.estimators.emgpr import EMGPR
from emgpr.estimators.family import ICM, LMC, SLFM, IndependentGP
from emgpr.estimators.one_pass import OnePassGP
from emgpr.estimators.stored import FORMAT, VERSION, Own, Stored, by_name, rebuilt
from emgpr.persistence import ModelFileError, PathLike, read

FAMILY = {cls.__name__: cls for cls in (EMGPR, ICM, LMC, SLFM, IndependentGP, OnePassGP)}


def load(path: PathLike, *, classes: Own = ()) -> MultiOutputGP | OnePassGP:
    """The fitted model that a file holds, of whichever class; see `EMGPR.load`.

    >>> from tempfile import TemporaryDirectory
    >>> import emgpr
    >>> from emgpr.datasets import jura_table
    >>> jura = jura_table()
    >>> model = EMGPR.paper(transform="log", n_members=3).fit(jura.X, jura.Y)
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/jura.emgpr")
    ...     again = emgpr.load(f"{folder}/jura.emgpr")
    >>> type(again).__name__, again.n_members, again.output_names_
    ('EMGPR', 3, ['Cd', 'Ni', 'Zn'])
    """
    header, arrays = read(path, FORMAT, VERSION)
    own, name = by_name(classes), header.get("class")
    cls = {**own, **FAMILY}.get(str(name))
    if not (isinstance(cls, type) and issubclass(cls, Stored)):
        raise ModelFileError(
            f"{path} holds a model of class {name!r}; expected one of {', '.join(FAMILY)}. If it "
            "is a class of yours, use its own load."
        )
    return rebuilt(cls, path, header.get("state"), arrays, own)

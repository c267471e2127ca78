"""Files that were damaged or forged are refused with a `ModelFileError`, or harmless."""

import json
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import PowerTransformer

import emgpr
from emgpr import IndependentGP, ModelFileError, OnePassGP
from tests.model_files import corruption
from tests.model_files.corruption import join, split
from tests.simulated import smooth_table

pytestmark = pytest.mark.slow

TRANSFORMS = [PowerTransformer(), "yeo-johnson", "normal-score"]


@pytest.fixture(scope="module")
def lmc_path(tmp_path_factory):
    """A file that is mostly arrays: 300 sites of 100 inputs, and one transform of each kind."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 100))
    Y = np.exp(smooth_table(rng, N=300)[1] / [2.0, 200.0, 0.02])
    Y[::7, 1] = np.nan
    model = IndependentGP(
        RBF(1.0, "fixed"), output_transform=TRANSFORMS, random_state=np.random.default_rng(3)
    )
    path = tmp_path_factory.mktemp("models") / "wide.emgpr"
    model.fit(X, Y).save(path)
    return path


@pytest.fixture(scope="module")
def sums_path(tmp_path_factory):
    """A file of sums, for six patterns of measured outputs, without readings."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    Y = np.exp(np.sin(5 * X @ rng.normal(size=(2, 3))) + 0.1 * rng.normal(size=(300, 3)))
    Y[rng.uniform(size=Y.shape) < 0.2] = np.nan
    model = OnePassGP(
        RBF(0.5, "fixed"), output_transform=TRANSFORMS, n_functions=41, random_state=0,
        tolerance=0.2, n_start=60, max_iter=5, n_restarts=1,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("models") / "sums.emgpr"
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(X, Y).save(path)
    return path


@pytest.mark.parametrize("kind", ["lmc_path", "sums_path"])
def test_damaged_files_are_refused_and_forged_ones_are_refused_or_harmless(kind, request):
    """A thousand damaged files and 250 forged ones of each model, in a process of its own."""
    path = request.getfixturevalue(kind)
    command = [sys.executable, corruption.__file__, path, "1000", "250"]
    fresh = subprocess.run(command, capture_output=True, text=True)
    assert fresh.returncode == 0, fresh.stderr
    found = json.loads(fresh.stdout)
    damaged, forged = found["damaged"], found["forged"]
    assert damaged["wrong"] == forged["wrong"] == []
    assert damaged["other"] == 0
    assert damaged["refused"] > 975  # the rest happen to restore what was there
    assert forged["refused"] > 150
    if kind == "lmc_path":  # sums are solved when they are loaded, which takes memory
        assert damaged["peak"] < 2 * damaged["size"]
        assert forged["peak"] < 2 * damaged["size"] + 4e6  # a forged name can import a module


def test_a_header_with_very_many_values_takes_little_memory(lmc_path):
    many = b"[" + b"{}," * 15000 + b"{}]"
    lmc_path.with_suffix(".bad").write_bytes(join(b'{"state":' + many + b"}", b""))
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        emgpr.load(lmc_path.with_suffix(".bad"))
    assert tracemalloc.get_traced_memory()[1] < 4e6
    tracemalloc.stop()


def forged(path, change) -> Path:
    """Write the model with its state and arrays changed, and a valid checksum."""
    header, data = split(path.read_bytes())
    arrays, at = {}, 0
    for name, kind, shape in header["arrays"]:
        n = int(np.prod(shape)) * np.dtype(kind).itemsize
        arrays[name] = np.frombuffer(data[at : at + n], kind).reshape(shape).copy()
        at += n + -n % 8
    change(header["state"], arrays)
    header["arrays"] = [[name, a.dtype.str, [*a.shape]] for name, a in arrays.items()]
    parts = [a.tobytes() + bytes(-a.nbytes % 8) for a in arrays.values()]
    path.with_suffix(".bad").write_bytes(join(header, b"".join(parts)))
    return path.with_suffix(".bad")


def arrays(**changes):
    """Change arrays by name."""
    return lambda state, found: found.update(
        {name: np.asarray(change(found[name])) for name, change in changes.items()}
    )


def fields(**values):
    """Set fields of the state."""
    return lambda state, _: state.update(values)


def scaler(**values):
    """Set fields of the output scaler."""
    return lambda state, _: state["scaler"]["of"].update(values)


def setting(**values):
    return lambda state, _: state["settings"]["dict"].update(values)


def set_at(array, where, value):
    array[where] = value
    return array


FORGED = {
    r"'weights' has shape \(1, 3, 2, 1\); expected \('L', 'Q', 3, 'k'\)": arrays(
        weights=lambda W: W[:, :, :2]
    ),
    r"'noise' has shape \(2, 2\); expected \(3, 3\)": arrays(noise=lambda n: n[:2, :2]),
    "'noise' contains NaN": arrays(noise=lambda n: set_at(n, (0, 0), np.nan)),
    "a noise variance is negative": arrays(noise=lambda n: -n),
    "noise is not symmetric": arrays(noise=lambda n: set_at(n, (0, 1), 0.01)),
    "the noise is not a covariance": arrays(noise=lambda n: n + 99.0 * (1 - np.eye(3))),
    "'x' contains float32": arrays(x=lambda x: x.astype(np.float32)),
    "'y' contains NaN or infinite": arrays(y=lambda y: set_at(y, (0, 0), np.inf)),
    "an output has no readings": arrays(y=lambda y: set_at(y, 1, np.nan)),
    "a site has no readings": arrays(y=lambda y: set_at(y, (slice(None), 4), np.nan)),
    "'x' has shape .300.": arrays(x=lambda x: x[:, 0]),
    "an axis is empty": arrays(x=lambda x: x[:, :0]),
    "'sites' are not distinct integers from 0 to 299": arrays(sites=lambda s: set_at(s, 0, 300)),
    "'sites' are not distinct": arrays(sites=lambda s: set_at(s, 0, 5)),
    "batch sizes do not sum to the number of sites": arrays(batches=lambda b: b - 1),
    "the size of a batch is invalid": arrays(batches=lambda b: b * 0),
    "values do not increase": arrays(**{"scaler.transforms[2].shape.values": lambda v: v[::-1]}),
    "PowerTransformer.*undefined at": arrays(
        **{"scaler.transforms[0].transformer.lambdas_": lambda v: v * np.nan}
    ),
    "a scale is not positive": arrays(**{"scaler.scale": lambda s: -s}),
    "'weights'.* missing": lambda state, _: state.pop("weights"),
    "'extra'.* unknown": fields(extra=1),
    "the number of kernels is not 3": lambda state, _: state["kernels"].pop(),
    "not a covariance function|NaN|length": lambda state, _: state["kernels"][0]["of"].update(
        length_scale={"float": "nan"}
    ),
    "there is no such kernel": fields(kernels=[{"kernel": "system", "of": {}}] * 3),
    "there is no such estimator": scaler(specs=[{"estimator": "Popen", "of": {"args": "true"}}]),
    "unknown to this version of emgpr": fields(kernels={"__reduce__": ["os.system", "true"]}),
    "expected a whole number": setting(max_iter=-1),
    "unexpected keyword argument 'shell'": setting(shell="true"),
    "'checkpoint' is set": setting(checkpoint="/tmp/any"),
    "more rows than the data": fields(
        index={"index": {"kind": "range", "of": {"tuple": [0, 10**12, 1]}, "names": [None]}}
    ),
    "2 output names for 3 columns": scaler(names={"tuple": ["a", "b"]}),
    "feature names are not strings": fields(feature_names=[3] * 100),
    "conditioning": fields(conditioning=-3),
    "'str' where a dict": fields(settings={"dict": "os.system"}),
}  # fmt: skip


@pytest.mark.parametrize("message", FORGED)
def test_a_forged_state_is_refused(lmc_path, message):
    bad = forged(lmc_path, FORGED[message])
    with pytest.raises(ModelFileError, match=f"(?s)does not contain a valid model: .*({message})"):
        emgpr.load(bad)


FORGED_SUMS = {
    "'weights' has shape": arrays(weights=lambda W: W[:, :2]),
    "the box has no extent": arrays(box=lambda box: box[::-1]),
    "a period is not positive": arrays(period=lambda period: -period),
    "the grid is invalid": arrays(strides=lambda strides: strides * 0),
    "'places' has shape": arrays(top=lambda top: top + 1),
    "'waves' contains float64": arrays(waves=lambda m: m.astype(float)),
    "the frequencies do not belong to their grid": arrays(waves=lambda m: m + 1),
    "a frequency occurs twice": arrays(waves=lambda m: np.vstack([m, m[-1:]])),
    "'signals' has shape": arrays(signals=lambda h: h[:-1]),
    "'power' contains NaN": arrays(power=lambda p: p * np.nan),
    "a set of outputs in 'read' has no sites": arrays(places=lambda c: -c),
    "the features repeat within the box": arrays(period=lambda period: period / 9),
    "a lower bound exceeds its upper": arrays(bounds=lambda b: b[:, ::-1] + [1.0, 0.0]),
    "'bounds' are not pairs": arrays(bounds=lambda b: b[:, :1]),
    "the number of 'parameter_names' differs": arrays(bounds=lambda b: b[:-1]),
    "'noise_bounds' are not ordered": arrays(noise_bounds=lambda b: b[:, ::-1]),
    "not a sorted subset of 3 outputs": fields(read=[[0, 1, 3]]),
    "an output has no readings": fields(read=[[0, 1]]),
    "'read' does not contain lists": fields(read=[[]]),
    "a set of outputs occurs twice": fields(read=[[0, 1, 2], [0, 1, 2]]),
    "'parameter_names' are not strings": fields(parameter_names=[1]),
    "'warned_share' is not a share": fields(warned_share={"float": "nan"}),
    "'free' is not a mask": fields(free={"array": "noise"}),
    "'n_iter' is None": fields(n_iter=None),
    "the number of 'bounds' does not match": setting(noise="independent"),
    "box='here'": setting(box="here"),
}


@pytest.mark.parametrize("message", FORGED_SUMS)
def test_a_forged_state_of_sums_is_refused(sums_path, message):
    with pytest.raises(ModelFileError, match=f"(?s)does not contain a valid model: .*({message})"):
        emgpr.load(forged(sums_path, FORGED_SUMS[message]))


@pytest.mark.parametrize("tree", [None, [], 3, "state", {"record": "Log", "of": {}}])
def test_a_state_that_is_not_a_tree_of_fields_is_refused(lmc_path, tree):
    header, data = split(lmc_path.read_bytes())
    lmc_path.with_suffix(".bad").write_bytes(join({**header, "state": tree}, data))
    with pytest.raises(ModelFileError, match="does not contain a valid model"):
        emgpr.load(lmc_path.with_suffix(".bad"))


@pytest.mark.parametrize("name", [None, ["ICM"], "os.system", "MultiOutputGP", "object"])
def test_the_name_of_a_class_is_only_looked_up(lmc_path, name):
    header, data = split(lmc_path.read_bytes())
    lmc_path.with_suffix(".bad").write_bytes(join({**header, "class": name}, data))
    with pytest.raises(ModelFileError, match=r"contains a model of class .*; expected EMGPR or"):
        emgpr.load(lmc_path.with_suffix(".bad"))


def test_a_deeply_nested_tree_is_refused(lmc_path):
    header, data = split(lmc_path.read_bytes())
    text = json.dumps(header).encode()
    deep = b'{"kernel":"Exponentiation","of":{"exponent":2,"kernel":' * 400 + b"1" + b"}}" * 400
    assert b'"kernels": [' in text
    text = text.replace(b'"kernels": [', b'"kernels": [' + deep + b",", 1)
    lmc_path.with_suffix(".bad").write_bytes(join(text, data))
    with pytest.raises(ModelFileError, match="recursion"):
        emgpr.load(lmc_path.with_suffix(".bad"))

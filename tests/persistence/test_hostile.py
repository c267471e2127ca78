"""Files that went wrong by accident or on purpose: refused with our error, or harmless."""

import json
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path

import corruption
import numpy as np
import pytest
from corruption import closed, opened
from simulated import smooth_table
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import PowerTransformer

import emgpr
from emgpr import IndependentGP, ModelFileError, OnePassGP

SCRIPT = corruption.__file__


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A model of which the arrays are most: 300 sites of 100 inputs, and one map of each kind."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 100))
    Y = np.exp(smooth_table(rng, N=300)[1] / [2.0, 200.0, 0.02])
    Y[::7, 1] = np.nan
    maps = [PowerTransformer(), "yeo-johnson", "normal-score"]
    seed = np.random.default_rng(3)
    model = IndependentGP(RBF(1.0, "fixed"), transform=maps, random_state=seed)
    path = tmp_path_factory.mktemp("models") / "wide.emgpr"
    model.fit(X, Y).save(path)
    return path


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    """A model of sums: six sets of outputs that were read together, and no readings."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    Y = np.exp(np.sin(5 * X @ rng.normal(size=(2, 3))) + 0.1 * rng.normal(size=(300, 3)))
    Y[rng.uniform(size=Y.shape) < 0.2] = np.nan
    maps = [PowerTransformer(), "yeo-johnson", "normal-score"]
    model = OnePassGP(RBF(0.5, "fixed"), transform=maps, n_functions=41, random_state=0)
    path = tmp_path_factory.mktemp("models") / "sums.emgpr"
    model.set_params(tolerance=0.2, n_start=60, max_iter=5, n_restarts=1)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(X, Y).save(path)
    return path


def outcomes(path, n, kind):
    command = [sys.executable, SCRIPT, path, str(n), kind]
    fresh = subprocess.run(command, capture_output=True, text=True)
    assert fresh.returncode == 0, fresh.stderr
    return json.loads(fresh.stdout)


@pytest.mark.parametrize("kind", ["path", "sums"])
def test_two_thousand_accidents_are_refused(kind, request):
    found = outcomes(request.getfixturevalue(kind), 2000, "by_accident")
    assert found["wrong"] == []
    assert found["other"] == 0
    assert found["refused"] > 1950  # the rest put back what was there
    assert found["peak"] < 2 * found["size"] or kind == "sums"  # which are solved when all is well


def test_five_hundred_forgeries_are_refused_or_harmless(path):
    found = outcomes(path, 500, "on_purpose")
    assert found["wrong"] == []
    assert found["refused"] > 350
    assert found["peak"] < 2 * found["size"]


def test_forged_sums_are_refused_or_harmless(sums):
    """What loads has been solved for, which takes the memory of a prediction."""
    found = outcomes(sums, 500, "on_purpose")
    assert found["wrong"] == []
    assert found["refused"] > 300


def test_a_header_of_nothing_but_parts_takes_a_megabyte_or_two(path):
    crowd = b"[" + b"{}," * 15000 + b"{}]"
    path.with_suffix(".bad").write_bytes(closed(b'{"state":' + crowd + b"}", b""))
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        emgpr.load(path.with_suffix(".bad"))
    assert tracemalloc.get_traced_memory()[1] < 4e6
    tracemalloc.stop()


def forged(path, change) -> Path:
    """The model with its state and its arrays changed, and a checksum that is right."""
    header, data = opened(path.read_bytes())
    arrays, at = {}, 0
    for name, kind, shape in header["arrays"]:
        n = int(np.prod(shape)) * np.dtype(kind).itemsize
        arrays[name] = np.frombuffer(data[at : at + n], kind).reshape(shape).copy()
        at += n + -n % 8
    change(header["state"], arrays)
    header["arrays"] = [[name, a.dtype.str, [*a.shape]] for name, a in arrays.items()]
    pieces = [a.tobytes() + bytes(-a.nbytes % 8) for a in arrays.values()]
    path.with_suffix(".bad").write_bytes(closed(header, b"".join(pieces)))
    return path.with_suffix(".bad")


def put(**arrays):
    return lambda state, held: held.update(
        {name: np.asarray(value(held[name])) for name, value in arrays.items()}
    )


def say(**values):
    return lambda state, held: state.update(values)


def set_at(array, where, value):
    array[where] = value
    return array


FORGED = {
    r"'weights' has shape \(1, 3, 2, 1\); expected \('L', 'Q', 3, 'k'\)": put(
        weights=lambda W: W[:, :, :2]
    ),
    r"'noise' has shape \(2, 2\); expected \(3, 3\)": put(noise=lambda n: n[:2, :2]),
    "'noise' holds NaN": put(noise=lambda n: set_at(n, (0, 0), np.nan)),
    "a noise is negative": put(noise=lambda n: -n),
    "noise is not symmetric": put(noise=lambda n: set_at(n, (0, 1), 0.01)),
    "the noise is no covariance": put(noise=lambda n: n + 99.0 * (1 - np.eye(3))),
    "'x' holds float32": put(x=lambda x: x.astype(np.float32)),
    "'y' holds NaN, infinity": put(y=lambda y: set_at(y, (0, 0), np.inf)),
    "an output was never measured": put(y=lambda y: set_at(y, 1, np.nan)),
    "a site where nothing was measured": put(y=lambda y: set_at(y, (slice(None), 4), np.nan)),
    "'x' has shape .300.": put(x=lambda x: x[:, 0]),
    "an axis is empty": put(x=lambda x: x[:, :0]),
    "'sites' are not those of 300": put(sites=lambda s: set_at(s, 0, 300)),
    "'sites' are not those": put(sites=lambda s: set_at(s, 0, 5)),
    "batches do not have the sites": put(batches=lambda b: b - 1),
    "a batch has no sites": put(batches=lambda b: b * 0),
    "values do not increase": put(**{"scale.maps[2].values": lambda v: v[::-1]}),
    "PowerTransformer.*gives no value": put(
        **{"scale.maps[0].transformer.lambdas_": lambda v: v * np.nan}
    ),
    "a scale is not positive": put(**{"scale.scale": lambda s: -s}),
    "'weights'.* missing": lambda state, held: state.pop("weights"),
    "'extra'.* not known": say(extra=1),
    "there are not 3 kernels": lambda state, held: state["kernels"].pop(),
    "gives no covariance|NaN|length": lambda state, held: state["kernels"][0]["of"].update(
        length_scale={"float": "nan"}
    ),
    "there is no such kernel": say(kernels=[{"kernel": "system", "of": {}}] * 3),
    "there is no such estimator": say(transforms=[{"estimator": "Popen", "of": {"args": "true"}}]),
    "which this emgpr does not know": say(kernels={"__reduce__": ["os.system", "true"]}),
    "expected a whole number": lambda state, held: state["settings"]["dict"].update(max_iter=-1),
    "unexpected keyword argument 'shell'": lambda state, held: state["settings"]["dict"].update(
        shell="true"
    ),
    "more rows than there is data": say(
        index={"index": {"kind": "range", "of": {"tuple": [0, 10**12, 1]}, "names": [None]}}
    ),
    "2 output_names for 3 columns": say(output_names=["a", "b"]),
    "'output_names' are not texts": say(output_names=["a", "b", 3]),
    "conditioning": say(conditioning=-3),
    "a str where names": say(settings={"dict": "os.system"}),
}  # fmt: skip


@pytest.mark.parametrize("message", FORGED)
def test_a_forged_state_is_refused(path, message):
    bad = forged(path, FORGED[message])
    with pytest.raises(ModelFileError, match=f"(?s)does not make a model: .*({message})"):
        emgpr.load(bad)


FORGED_SUMS = {
    "'weights' has shape": put(weights=lambda W: W[:, :2]),
    "the box has no extent": put(box=lambda box: box[::-1]),
    "a period is not positive": put(period=lambda period: -period),
    "the waves have no lattice": put(strides=lambda strides: strides * 0),
    "'places' has shape": put(top=lambda top: top + 1),
    "'waves' holds float64": put(waves=lambda m: m.astype(float)),
    "the waves are not of their lattice": put(waves=lambda m: m + 1),
    "a wave is there twice": put(waves=lambda m: np.vstack([m, m[-1:]])),
    "'signals' has shape": put(signals=lambda h: h[:-1]),
    "'power' holds NaN": put(power=lambda p: p * np.nan),
    "outputs were read at no site": put(places=lambda c: -c),
    "the waves repeat themselves in the box": put(period=lambda period: period / 9),
    "a bound is above the other": put(bounds=lambda b: b[:, ::-1] + [1.0, 0.0]),
    "'bounds' are not of this model": put(bounds=lambda b: b[:-1]),
    "'read' are not some of 3 outputs": say(read=[[0, 1, 3]]),
    "an output was never read": say(read=[[0, 1]]),
    "'read' are not outputs": say(read=[[]]),
    "there twice": say(read=[[0, 1, 2], [0, 1, 2]]),
    "'named' are not texts": say(named=[1]),
    "'told_of' is no share": say(told_of={"float": "nan"}),
    "'free' does not say": say(free={"array": "noise"}),
    "'n_iter' is None": say(n_iter=None),
    "box has shape|box=|'box'": lambda state, held: state["settings"]["dict"].update(box="here"),
}


@pytest.mark.parametrize("message", FORGED_SUMS)
def test_a_forged_state_of_sums_is_refused(sums, message):
    with pytest.raises(ModelFileError, match=f"(?s)does not make a model: .*({message})"):
        emgpr.load(forged(sums, FORGED_SUMS[message]))


@pytest.mark.parametrize("tree", [None, [], 3, "state", {"record": "Log", "of": {}}])
def test_a_state_that_is_none_is_refused(path, tree):
    header, data = opened(path.read_bytes())
    path.with_suffix(".bad").write_bytes(closed({**header, "state": tree}, data))
    with pytest.raises(ModelFileError, match="does not make a model"):
        emgpr.load(path.with_suffix(".bad"))


@pytest.mark.parametrize("name", [None, 3, ["ICM"], "os.system", "MultiOutputGP", "object"])
def test_the_name_of_a_class_is_only_looked_up(path, name):
    header, data = opened(path.read_bytes())
    path.with_suffix(".bad").write_bytes(closed({**header, "class": name}, data))
    with pytest.raises(ModelFileError, match=r"holds a model of class .*; expected one of EMGPR"):
        emgpr.load(path.with_suffix(".bad"))


def test_a_deep_tree_is_refused(path):
    header, data = opened(path.read_bytes())
    text = json.dumps(header).encode()
    deep = b'{"kernel":"Exponentiation","of":{"exponent":2,"kernel":' * 400 + b"1" + b"}}" * 400
    assert b'"transforms": [' in text
    bad = text.replace(b'"transforms": [', b'"transforms": [' + deep + b",")
    path.with_suffix(".bad").write_bytes(closed(bad, data))
    with pytest.raises(ModelFileError, match="recursion"):
        emgpr.load(path.with_suffix(".bad"))

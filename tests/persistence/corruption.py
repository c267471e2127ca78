"""Files that went wrong: by accident (the checksum tells), or on purpose (it is right).

Run as a script, this loads every one of them and prints what came of it as JSON: a process of its
own shows what users get, without the checks of shapes that the tests switch on.
"""

import copy
import hashlib
import json
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import emgpr
from emgpr.persistence.container import DIGEST, MAGIC, START

VALUES = (
    None, True, False, 0, -1, 1, 7, 2**31, 10**30, 0.5, -0.5, 1e308, "", "os.system", "a\0b",
    [], {}, [[]], [None], [-1, 2], {"float": "nan"}, {"float": "inf"}, {"float": "os"},
    {"array": "x"},
    {"array": "weights"}, {"array": "nothing"}, {"array": "y"}, {"array": []}, {"tuple": []},
    {"tuple": [1, 2]}, {"tuple": 3}, {"dict": {}}, {"dict": []}, {"dict": {"site": 0}},
    {"pairs": [1]}, {"pairs": [[[], 1]]}, {"scalar": "float64", "of": "x"},
    {"scalar": "object", "of": 1},
    {"scalar": "int8", "of": 10**9}, {"kernel": "RBF", "of": {}}, {"kernel": "system", "of": {}},
    {"kernel": "RBF", "of": {"length_scale": -1.0}}, {"kernel": "RBF", "of": {"metric": 1}},
    {"kernel": "os.system", "of": {"command": "true"}}, {"kernel": "system", "own": True, "of": {}},
    {"kernel": "WhiteKernel", "of": {}}, {"kernel": "Sum", "of": {"k1": 1, "k2": None}},
    {"estimator": "PowerTransformer", "of": {}}, {"estimator": "Popen", "of": {"args": "true"}},
    {"record": "Log", "of": {}}, {"record": "Log", "of": {"base": 2}}, {"record": "Path", "of": {}},
    {"record": "YeoJohnson", "of": {"centre": "a", "spread": None, "power": []}},
    {"record": "Settled", "of": {}}, {"ufunc": "numpy.exp"}, {"ufunc": "os.system"},
    {"function": "system"}, {"function": "eval", "own": True}, {"generator": "PCG64", "of": {}},
    {"random_state": "MT19937", "of": {"dict": {}}}, {"objects": [1], "shape": [10**12]},
    {"index": {"kind": "range", "of": {"tuple": [0, 10**12, 1]}, "names": [None]}},
    {"index": {"kind": "range", "of": {"tuple": [0, 359, 1]}, "names": [["a"], []]}},
    {"index": {"kind": "dates", "since": {"array": "sites"}, "unit": "fs", "zone": 1}},
    {"index": {"kind": "__import__"}}, {"__reduce__": ["os.system", "true"]},
)  # fmt: skip


def by_accident(whole: bytes, rng: np.random.Generator) -> bytes:
    """Cut short, a bit flipped, bytes put in, taken out or zeroed, or two parts exchanged."""
    at, n = int(rng.integers(len(whole))), int(rng.integers(1, 40))
    kind = rng.choice(["cut", "flip", "flip", "insert", "delete", "zero", "swap", "append"])
    if kind == "cut":
        return whole[:at]
    if kind == "flip":
        return whole[:at] + bytes([whole[at] ^ (1 << int(rng.integers(8)))]) + whole[at + 1 :]
    if kind == "insert":
        return whole[:at] + rng.bytes(n) + whole[at:]
    if kind == "delete":
        return whole[:at] + whole[at + n :]
    if kind == "zero":
        return whole[:at] + bytes(len(whole[at : at + n])) + whole[at + n :]
    if kind == "swap":
        return whole[:at] + whole[at + n : at + 2 * n] + whole[at : at + n] + whole[at + 2 * n :]
    return whole + rng.bytes(n)


def on_purpose(whole: bytes, rng: np.random.Generator) -> bytes:
    """A value somewhere in the header replaced, or left out, or numbers among the arrays."""
    header, data = opened(whole)
    if rng.uniform() < 0.1:
        changed = np.frombuffer(data, np.uint8).copy()
        at = 8 * int(rng.integers(len(data) // 8))
        odd = rng.choice([np.nan, np.inf, -1e300, -1.0, 1e300])
        changed[at : at + 8] = np.frombuffer(np.float64(odd).tobytes(), np.uint8)
        return closed(header, changed.tobytes())
    places = list(nodes(header))
    where, key = places[int(rng.integers(len(places)))]
    if rng.uniform() < 0.1:
        del where[key]
    else:
        where[key] = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
    return closed(header, data)


def opened(whole: bytes) -> tuple[dict, bytes]:
    length = int.from_bytes(whole[16:START], "little")
    header = json.loads(whole[START : START + length])
    return header, whole[START + length + -length % 8 : -DIGEST]


def closed(header, data: bytes) -> bytes:
    """A file of this header (or of any bytes for one), with the checksum that it should have."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    padded = text + bytes(-len(text) % 8)
    size = START + len(padded) + len(data) + DIGEST
    start = MAGIC + size.to_bytes(8, "little") + len(text).to_bytes(8, "little")
    return signed(start + padded + data)


def signed(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()


def nodes(tree):
    """Every place in a tree: what holds it, and under which key."""
    if isinstance(tree, dict | list):
        for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
            yield tree, key
            yield from nodes(value)


def outcomes(path: Path, n: int, seed: int, corrupt) -> dict:
    """What came of loading n corrupted files: how many were refused, loaded, or went wrong."""
    whole, rng, spoilt = path.read_bytes(), np.random.default_rng(seed), path.with_suffix(".bad")
    honest = emgpr.load(path)
    x = honest._seen.x[:5] + 0.01 if hasattr(honest, "_seen") else honest.box_.mean(axis=0)[None]
    expected = honest.predict(table(honest, x))
    found = {"refused": 0, "equal": 0, "other": 0, "wrong": [], "peak": 0, "size": len(whole)}
    for i in range(n):
        spoilt.write_bytes(corrupt(whole, rng))
        tracemalloc.start()
        try:
            model = emgpr.load(spoilt)
        except emgpr.ModelFileError:
            model = None
        except BaseException as trouble:
            found["wrong"].append(f"{i}: load: {trouble!r}")
            continue
        finally:
            found["peak"] = max(found["peak"], tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        if model is None:
            found["refused"] += 1
        else:
            try:
                answer = model.predict(table(model, x), return_std=True)[0]
                same = answer.shape == expected.shape and np.allclose(answer, expected, rtol=1e-10)
                found["equal" if same else "other"] += 1
            except BaseException as trouble:
                found["wrong"].append(f"{i}: predict: {trouble!r}")
    return found


def table(model, x):
    names = getattr(model, "feature_names_in_", None)
    return x if names is None else pd.DataFrame(x, columns=names)


if __name__ == "__main__":
    warnings.simplefilter("error")
    path, n, kind = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    corrupt = {"by_accident": by_accident, "on_purpose": on_purpose}[kind]
    print(json.dumps(outcomes(path, n, 2017, corrupt)))

"""Files that were damaged by accident (the checksum shows it) or forged (the checksum is right).

Run as a script, this loads many of them and prints the outcomes as JSON: a process of its own
behaves as for users, without the checks of array shapes that the tests switch on.
"""

import copy
import hashlib
import json
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import emgpr
from emgpr.persistence.container import DIGEST_BYTES, MAGIC, START_BYTES

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
    {"record": "ResolvedParams", "of": {}}, {"ufunc": "numpy.exp"}, {"ufunc": "os.system"},
    {"function": "system"}, {"function": "eval", "own": True}, {"generator": "PCG64", "of": {}},
    {"random_state": "MT19937", "of": {"dict": {}}}, {"objects": [1], "shape": [10**12]},
    {"index": {"kind": "range", "of": {"tuple": [0, 10**12, 1]}, "names": [None]}},
    {"index": {"kind": "range", "of": {"tuple": [0, 359, 1]}, "names": [["a"], []]}},
    {"index": {"kind": "dates", "since": {"array": "sites"}, "unit": "fs", "zone": 1}},
    {"index": {"kind": "__import__"}}, {"__reduce__": ["os.system", "true"]},
)  # fmt: skip


def damage(content: bytes, rng: np.random.Generator) -> bytes:
    """Truncate, flip a bit, insert, delete or zero bytes, exchange two parts, or append."""
    at, n = int(rng.integers(len(content))), int(rng.integers(1, 40))
    kind = rng.choice(["cut", "flip", "flip", "insert", "delete", "zero", "swap", "append"])
    before, after = content[:at], content[at:]
    if kind == "cut":
        return before
    if kind == "flip":
        return before + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + after[1:]
    if kind == "insert":
        return before + rng.bytes(n) + after
    if kind == "delete":
        return before + after[n:]
    if kind == "zero":
        return before + bytes(len(after[:n])) + after[n:]
    if kind == "swap":
        return before + after[n : 2 * n] + after[:n] + after[2 * n :]
    return content + rng.bytes(n)


def forge(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace or remove a value in the header, or change a number in the arrays."""
    header, data = split(content)
    if rng.uniform() < 0.1:
        changed = np.frombuffer(data, np.uint8).copy()
        at = 8 * int(rng.integers(len(data) // 8))
        odd = rng.choice([np.nan, np.inf, -1e300, -1.0, 1e300])
        changed[at : at + 8] = np.frombuffer(np.float64(odd).tobytes(), np.uint8)
        return join(header, changed.tobytes())
    nodes = list(positions(header))
    parent, key = nodes[int(rng.integers(len(nodes)))]
    if rng.uniform() < 0.1:
        del parent[key]
    else:
        parent[key] = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
    return join(header, data)


def split(content: bytes) -> tuple[dict, bytes]:
    """Return the header and the arrays of a file."""
    length = int.from_bytes(content[16:START_BYTES], "little")
    header = json.loads(content[START_BYTES : START_BYTES + length])
    return header, content[START_BYTES + length + -length % 8 : -DIGEST_BYTES]


def join(header, data: bytes) -> bytes:
    """Return a file with this header, or any bytes in its place, and a valid checksum."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    padded = text + bytes(-len(text) % 8)
    size = START_BYTES + len(padded) + len(data) + DIGEST_BYTES
    start = MAGIC + size.to_bytes(8, "little") + len(text).to_bytes(8, "little")
    return with_checksum(start + padded + data)


def with_checksum(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()


def positions(tree):
    """Yield every position in a tree: the container and the key."""
    if isinstance(tree, dict | list):
        for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
            yield tree, key
            yield from positions(value)


def outcomes(path: Path, n: int, seed: int, corrupt) -> dict:
    """Load n corrupted files; count those refused or loaded, and list unexpected errors."""
    content, rng, bad = path.read_bytes(), np.random.default_rng(seed), path.with_suffix(".bad")
    intact = emgpr.load(path)
    x = np.atleast_2d(np.asarray(intact.posterior_.extent, float)[:5]).mean(axis=0)[None]
    expected = intact.predict(as_table(intact, x))
    found = {"refused": 0, "equal": 0, "other": 0, "wrong": [], "peak": 0, "size": len(content)}
    for i in range(n):
        bad.write_bytes(corrupt(content, rng))
        tracemalloc.start()
        try:
            model = emgpr.load(bad)
        except emgpr.ModelFileError:
            model = None
        except BaseException as error:
            found["wrong"].append(f"{i}: load: {error!r}")
            continue
        finally:
            found["peak"] = max(found["peak"], tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        if model is None:
            found["refused"] += 1
            continue
        try:
            mean = model.predict(as_table(model, x), return_std=True)[0]
            same = mean.shape == expected.shape and np.allclose(mean, expected, rtol=1e-10)
            found["equal" if same else "other"] += 1
        except BaseException as error:
            found["wrong"].append(f"{i}: predict: {error!r}")
    return found


def assert_harmless(model, folder: Path, n_damaged: int, n_forged: int) -> None:
    """Assert that damaged and forged files of a model are refused, or predict without errors."""
    model.save(folder / "model.emgpr")
    command = [sys.executable, __file__, str(folder / "model.emgpr"), str(n_damaged), str(n_forged)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["damaged"]["wrong"] == []
    assert found["forged"]["wrong"] == []
    assert found["damaged"]["other"] == 0
    assert found["forged"]["refused"] > 20


def as_table(model, x):
    names = getattr(model, "feature_names_in_", None)
    return x if names is None else pd.DataFrame(x, columns=names)


if __name__ == "__main__":
    warnings.simplefilter("error")
    path, n_damaged, n_forged = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    damaged = outcomes(path, n_damaged, 2017, damage)
    print(json.dumps({"damaged": damaged, "forged": outcomes(path, n_forged, 2017, forge)}))

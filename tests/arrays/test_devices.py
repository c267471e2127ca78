"""Names of devices, arrays that are moved to them and back, and limits on memory and threads."""

import logging
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

from emgpr.arrays import (
    allowed_threads,
    chunk_bytes,
    diagonal,
    empty,
    limit_threads,
    namespace,
    panel_size,
    resolve_device,
    to_device,
    to_device_of,
    to_numpy,
    zeros,
)
from emgpr.arrays.devices import MULTITHREADED_ROWS


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it fails


@pytest.fixture
def pretend_gpus(monkeypatch):
    """Let torch report this many GPUs."""
    torch = pytest.importorskip("torch")

    def pretend(n):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: n > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: n)

    return pretend


@pytest.mark.parametrize("name", ["gpu", "mps", "cpu:1", "CUDA", "", None, True, 0])
def test_an_unknown_device_is_rejected(name):
    with pytest.raises(ValueError, match=r'device=.*"cpu" \(NumPy\).*64-bit'):
        resolve_device(name)


@pytest.mark.parametrize("name", ["torch", "cuda:1"])
def test_without_torch_the_error_names_the_extra_and_the_alternative(no_torch, name):
    with pytest.raises(ImportError, match=r'device="cpu".*needs torch.*pip install .emgpr\[torch'):
        resolve_device(name)


def test_without_a_gpu_the_error_says_so(pretend_gpus):
    pretend_gpus(0)
    with pytest.raises(ValueError, match=r"device='cuda', but torch .* finds no CUDA GPU"):
        resolve_device("cuda")


@pytest.mark.parametrize("name", ["cuda:2", "cuda:-1", "cuda:", "cuda:first"])
def test_a_gpu_that_does_not_exist_is_rejected(pretend_gpus, name):
    pretend_gpus(2)
    with pytest.raises(ValueError, match="expected one of 'cuda:0' to 'cuda:1'"):
        resolve_device(name)


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "torch", "cpu"])
def test_an_available_device_keeps_its_name(pretend_gpus, name):
    pretend_gpus(2)
    assert resolve_device(name) == name


@pytest.mark.parametrize(("n", "found", "words"), [(0, "cpu", "NumPy"), (1, "cuda", "CUDA GPU")])
def test_auto_detects_a_gpu_and_logs_the_choice(pretend_gpus, caplog, n, found, words):
    pretend_gpus(n)
    with caplog.at_level(logging.DEBUG, logger="emgpr"):
        assert resolve_device("auto") == found
    assert words in caplog.text


def test_auto_without_torch_is_numpy(no_torch):
    assert resolve_device("auto") == "cpu"


ARRAYS = {
    "contiguous": np.arange(6.0).reshape(2, 3),
    "negative strides": np.arange(6.0)[::-1],
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "read only": np.broadcast_to(np.arange(3.0), (2, 3)),
    "booleans": np.array([True, False]),
    "integers": np.array([[3], [-1]]),
    "scalar": np.array(2.5),
    "empty": np.empty((0, 3)),
}


@pytest.mark.parametrize("a", ARRAYS.values(), ids=ARRAYS.keys())
def test_a_round_trip_to_a_device_changes_nothing(a, device):
    moved = to_device(a, device)
    assert not isinstance(moved, np.ndarray)
    for back in (to_numpy(moved), to_numpy(to_device_of(a, moved))):
        assert isinstance(back, np.ndarray)
        assert back.dtype == a.dtype
        assert_array_equal(back, a)


def test_changes_on_a_device_do_not_reach_the_original(device):
    a = np.zeros(3)
    for moved in (to_device(a, device), to_device_of(a, to_device(a, device))):
        moved += 1.0
    assert_array_equal(a, np.zeros(3))


def test_on_the_cpu_nothing_is_copied():
    a = np.zeros(3)
    assert to_device(a, "cpu") is to_device_of(a, a) is to_numpy(a) is a


def test_a_diagonal_is_a_view_of_the_matrix(device):
    for A in (np.zeros((2, 3, 4, 3)), to_device(np.zeros((2, 3, 4, 3)), device)):
        diagonal(A, -3, -1)[...] = to_device_of(np.arange(3.0), A)
        expected = np.broadcast_to(np.arange(3.0), (2, 4, 3))
        assert_array_equal(np.einsum("aibi->abi", to_numpy(A)), expected)


def test_new_arrays_have_the_device_and_dtype_of_another(device):
    other = to_device(np.zeros(2), device)
    for new in (empty, zeros):
        made = new(other, 3, 4)
        assert made.shape == (3, 4)
        assert (made.device, made.dtype) == (other.device, other.dtype)
        assert namespace(made) is namespace(other)
    for like in (np.ones(2), other):
        assert_array_equal(to_numpy(zeros(like, 3, 4)), np.zeros((3, 4)))


def test_a_gpu_works_on_larger_panels(device):
    on_cpu, on_device = panel_size(np.zeros(2)), panel_size(to_device(np.zeros(2), device))
    assert on_device > 100 * on_cpu if device == "cuda" else on_device == on_cpu
    assert min(chunk_bytes("cpu"), chunk_bytes(device)) > 1e6


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_the_allowed_number_of_threads_is_that_without_limits():
    with threadpool_limits(2, "blas"):
        assert allowed_threads() == 2
        with limit_threads(0), limit_threads(0):
            assert blas_threads() == {1}
            assert allowed_threads() == 2
        assert blas_threads() == {2}
    with threadpool_limits(1, "blas"), limit_threads(0):
        assert allowed_threads() == 1


def test_small_matrices_use_one_thread_and_nested_limits_end_with_the_outermost():
    with threadpool_limits(2, "blas"):
        with limit_threads(MULTITHREADED_ROWS - 1):
            with limit_threads(10):
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {2}
        with limit_threads(MULTITHREADED_ROWS):
            assert blas_threads() == {2}

"""Where arrays are, what a user may call that place, and the way there and back."""

import logging
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from emgpr.arrays import diagonal, empty, fetch, like, namespace, panel, put, room, settle, zeros


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # an import of it fails


@pytest.fixture
def gpus(monkeypatch):
    """As many GPUs as are asked for, as far as torch says."""
    torch = pytest.importorskip("torch")

    def pretend(n):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: n > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: n)

    return pretend


@pytest.mark.parametrize("name", ["gpu", "mps", "cpu:1", "torch:0", "CUDA", "", None, True, 0])
def test_a_name_that_means_nothing_is_refused(name):
    with pytest.raises(ValueError, match=r'device=.*"cpu" \(NumPy\).*64 bits'):
        settle(name)


@pytest.mark.parametrize("name", ["torch", "cuda", "cuda:1"])
def test_without_torch_the_extra_is_named(no_torch, name):
    with pytest.raises(ImportError, match=r"needs torch.*pip install 'emgpr\[torch\]'"):
        settle(name)


def test_without_a_gpu_that_is_said(gpus):
    gpus(0)
    with pytest.raises(ValueError, match=r"device='cuda', but torch .* finds no CUDA GPU"):
        settle("cuda")


@pytest.mark.parametrize("name", ["cuda:2", "cuda:-1", "cuda:", "cuda:first"])
def test_a_gpu_that_is_not_there_is_refused(gpus, name):
    gpus(2)
    with pytest.raises(ValueError, match="the GPUs here are 'cuda:0' to 'cuda:1'"):
        settle(name)


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:1", "torch", "cpu"])
def test_what_is_there_is_taken_as_it_is_called(gpus, name):
    gpus(2)
    assert settle(name) == name


@pytest.mark.parametrize(("n", "found", "words"), [(0, "cpu", "NumPy"), (1, "cuda", "CUDA GPU")])
def test_auto_takes_what_is_there_and_tells(gpus, caplog, n, found, words):
    gpus(n)
    with caplog.at_level(logging.DEBUG, logger="emgpr"):
        assert settle("auto") == found
    assert words in caplog.text


def test_auto_without_torch_is_numpy(no_torch):
    assert settle("auto") == "cpu"


ARRAYS = {
    "plain": np.arange(6.0).reshape(2, 3),
    "turned round": np.arange(6.0)[::-1],
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "read only": np.broadcast_to(np.arange(3.0), (2, 3)),
    "truths": np.array([True, False]),
    "whole numbers": np.array([[3], [-1]]),
    "a single number": np.array(2.5),
    "nothing": np.empty((0, 3)),
}


@pytest.mark.parametrize("a", ARRAYS.values(), ids=ARRAYS.keys())
def test_there_and_back_nothing_changes(a, device):
    there = put(a, device)
    assert not isinstance(there, np.ndarray)
    for way_back in (fetch(there), fetch(like(a, there))):
        assert isinstance(way_back, np.ndarray)
        assert way_back.dtype == a.dtype
        assert_array_equal(way_back, a)


def test_what_is_done_there_is_not_done_here(device):
    a = np.zeros(3)
    for there in (put(a, device), like(a, put(a, device))):
        there += 1.0
    assert_array_equal(a, np.zeros(3))


def test_on_the_cpu_nothing_is_copied():
    a = np.zeros(3)
    assert put(a, "cpu") is like(a, a) is fetch(a) is a


def test_a_diagonal_can_be_written_through():
    A = np.zeros((2, 3, 4, 3))
    diagonal(A, -3, -1)[...] = np.arange(3)
    assert_array_equal(np.einsum("aibi->abi", A), np.broadcast_to(np.arange(3), (2, 4, 3)))


def test_so_it_can_on_a_device(device):
    A = put(np.zeros((2, 3, 4, 3)), device)
    diagonal(A, -3, -1)[...] = put(np.arange(3.0), device)
    assert_array_equal(np.einsum("aibi->abi", fetch(A)), np.broadcast_to(np.arange(3.0), (2, 4, 3)))


@pytest.mark.parametrize("new", [empty, zeros])
def test_a_new_array_is_where_the_other_is(device, new):
    there = put(np.zeros(2), device)
    made = new(there, 3, 4)
    assert made.shape == (3, 4)
    assert (made.device, made.dtype) == (there.device, there.dtype)
    assert namespace(made) is namespace(there)


def test_zeros_are_that(device):
    for there in (np.ones(2), put(np.ones(2), device)):
        assert_array_equal(fetch(zeros(there, 3, 4)), np.zeros((3, 4)))


def test_a_gpu_works_on_more_at_a_time(device):
    here = panel(np.zeros(2))
    there = panel(put(np.zeros(2), device))
    assert there > 100 * here if device == "cuda" else there == here


def test_there_is_room_everywhere(device):
    assert room("cpu") > 1e6
    assert room(device) > 1e6

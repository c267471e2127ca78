"""Transfer of arrays between NumPy and torch devices, memory limits and thread limits."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

import array_api_compat
import joblib
import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Shaped
from threadpoolctl import ThreadpoolController

from emgpr.optional_imports import import_optional

if TYPE_CHECKING:
    Array = np.ndarray
else:
    Array = Any  # NumPy or torch: jaxtyping checks shape and dtype of both

# Memory limits for one chunk of work, in bytes, on the CPU and on a GPU.
CPU_CHUNK_BYTES, GPU_CHUNK_BYTES = 256e6, 4e9
# Numbers of array elements processed at a time, which fit into the CPU's caches or occupy a GPU.
CPU_PANEL_SIZE, GPU_PANEL_SIZE = 150_000, 100_000_000
# A single thread factorises a matrix with fewer rows in at most a tenth of a second. Synchronising
# several threads would take longer: up to forty times as long while other processes are running.
MULTITHREADED_ROWS = 2000

logger = logging.getLogger(__name__)


def resolve_device(device: Any) -> str:
    """Return a device name, with "auto" resolved; raise an error if the device is unavailable.

    >>> resolve_device("cpu")
    'cpu'
    """
    check_device(device)
    if device == "auto":
        return _detect_device()
    if device.startswith("cuda"):
        _check_gpu(device)
    elif device == "torch":
        _torch(device)
    return device


def check_device(device: Any) -> None:
    """Raise an error if a device name is invalid, without checking that the device exists."""
    known = ("cpu", "cuda", "torch", "auto")
    if device not in known and not str(device).startswith("cuda:"):
        raise ValueError(
            f'device={device!r}; expected "cpu" (NumPy), "cuda" or "cuda:1" (a GPU), "torch" '
            '(torch on the CPU) or "auto". Other devices lack 64-bit floating-point numbers.'
        )


def _detect_device() -> str:
    """Return "cuda" if torch finds a GPU, else "cpu"."""
    try:
        found = "cuda" if import_module("torch").cuda.is_available() else "cpu"
    except ImportError:
        found = "cpu"
    logger.debug("device='auto' resolves to %s", "a CUDA GPU" if found == "cuda" else "NumPy")
    return found


def _check_gpu(device: str) -> None:
    torch = _torch(device)
    if not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r}, but torch {torch.__version__} finds no CUDA GPU here. Set "
            'device="cpu", or device="auto" to use a GPU only where one is available.'
        )
    n, number = torch.cuda.device_count(), device.removeprefix("cuda").removeprefix(":")
    if device != "cuda" and not (number.isdigit() and int(number) < n):
        raise ValueError(f"device={device!r}; expected one of 'cuda:0' to 'cuda:{n - 1}'.")


def _torch(device: str) -> Any:
    return import_optional("torch", f'device={device!r}, unlike device="cpu",', "torch")


def to_device(a: Shaped[np.ndarray, "*s"], device: str) -> Shaped[Array, "*s"]:
    """Copy a NumPy array to a device; if the device is "cpu", return the array itself."""
    if device == "cpu":
        return a
    return _to_torch(a, _torch(device), "cpu" if device == "torch" else device)


def to_device_of(a: Shaped[np.ndarray, "*s"], other: Array) -> Shaped[Array, "*s"]:
    """Copy an array to the device of `other`; return the same array if `other` is in NumPy."""
    if isinstance(other, np.ndarray):
        return a
    return _to_torch(a, array_namespace(other), other.device)


def _to_torch(a: np.ndarray, torch: Any, device: Any) -> Any:
    # The array is copied, because torch would share its memory and rejects negative strides.
    return torch.from_numpy(np.array(a, order="C")).to(device)


def to_numpy(a: Shaped[Array, "*s"]) -> Shaped[np.ndarray, "*s"]:
    """Convert an array to NumPy, copying it if it is on a GPU."""
    return np.asarray(array_api_compat.to_device(a, "cpu"))


def chunk_bytes(device: str) -> float:
    """Return the memory limit for one chunk of work on a device, in bytes."""
    if not device.startswith("cuda"):
        return CPU_CHUNK_BYTES
    cuda = _torch(device).cuda
    free, _ = cuda.mem_get_info(device)
    unused = cuda.memory_reserved(device) - cuda.memory_allocated(device)
    return min(GPU_CHUNK_BYTES, (free + unused) / 4)


def panel_size(other: Array) -> int:
    """Return the number of array elements to process at a time on the device of `other`.

    The number is larger on a GPU, because the overhead of each call takes as long as processing
    half a million elements.
    """
    on_gpu = str(array_api_compat.device(other)).startswith("cuda")
    return GPU_PANEL_SIZE if on_gpu else CPU_PANEL_SIZE


def empty(other: Array, *shape: int) -> Array:
    """Return an uninitialised array of this shape, with the device and dtype of `other`."""
    device = array_api_compat.device(other)
    return array_namespace(other).empty(shape, dtype=other.dtype, device=device)


def zeros(other: Array, *shape: int) -> Array:
    """Return an array of zeros of this shape, with the device and dtype of `other`."""
    device = array_api_compat.device(other)
    return array_namespace(other).zeros(shape, dtype=other.dtype, device=device)


def diagonal(A: Array, rows: int = -2, columns: int = -1) -> Array:
    """Return a writable view of the diagonal over two axes of A, as the last axis of the view."""
    if isinstance(A, np.ndarray):
        return np.einsum("...ii->...i", np.moveaxis(A, (rows, columns), (-2, -1)))
    return A.diagonal(dim1=rows, dim2=columns)


def chunks(
    n: int, bytes_each: float, n_jobs: int | None, budget: float = CPU_CHUNK_BYTES
) -> list[range]:
    """Divide n problems into ranges that fit into the memory budget and keep all workers busy.

    >>> chunks(5, bytes_each=1.0, n_jobs=2, budget=2.0)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    max_size = max(1, int(budget // max(bytes_each, 1.0)))
    workers = max(1, joblib.effective_n_jobs(n_jobs))
    size = min(max_size, -(-n // workers))
    return [range(start, min(start + size, n)) for start in range(0, n, size)]


@contextmanager
def limit_threads(n_rows: int) -> Iterator[None]:
    """Restrict BLAS and torch to one thread if the largest matrix, with `n_rows` rows, is small."""
    with _SINGLE_THREAD if n_rows < MULTITHREADED_ROWS else nullcontext():
        yield


def allowed_threads() -> int:
    """Return the number of threads that BLAS may use where `limit_threads` does not restrict it."""
    return _SINGLE_THREAD.n_before if _SINGLE_THREAD.active else _blas_threads()


def _blas_threads() -> int:
    libraries = _thread_pools("torch" in sys.modules).lib_controllers
    threads = (library.num_threads for library in libraries if library.user_api == "blas")
    return max(threads, default=1)


class _SingleThread:
    """Context manager that restricts the process to one thread; it can be nested."""

    def __init__(self) -> None:
        self._lock, self._depth, self.n_before = Lock(), 0, 1

    def __enter__(self) -> None:
        with self._lock:
            if not self._depth:
                self.n_before = _blas_threads()
                self._limits = _thread_pools("torch" in sys.modules).limit(limits=1)
            self._depth += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._limits.restore_original_limits()

    @property
    def active(self) -> bool:
        """Whether the process is restricted to one thread at present."""
        return self._depth > 0


@cache
def _thread_pools(with_torch: bool) -> ThreadpoolController:
    """Return the thread pools of the process, cached because finding them is slow."""
    return ThreadpoolController()


_SINGLE_THREAD = _SingleThread()
_thread_pools("torch" in sys.modules)  # called at import, so that the first fit is not delayed

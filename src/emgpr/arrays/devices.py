"""Where arrays are: in NumPy's memory or, as torch's tensors, on a device; and the way between."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

import array_api_compat
import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Shaped

if TYPE_CHECKING:
    Array = np.ndarray
else:
    Array = Any  # NumPy's or torch's: jaxtyping checks shape and kind of either

HOST_ROOM = 256e6  # bytes
DEVICE_ROOM = 4e9
HOST_PANEL = 150_000  # numbers
DEVICE_PANEL = 100_000_000

logger = logging.getLogger(__name__)


def settle(device: Any) -> str:
    """The device that is meant: "cpu", "torch" or a GPU that is there.

    >>> settle("cpu")
    'cpu'
    """
    refuse_unknown(device)
    if device == "auto":
        return _whatever_is_there()
    if device.startswith("cuda"):
        _look_for(device)
    elif device == "torch":
        _torch(device)
    return device


def refuse_unknown(device: Any) -> None:
    """Raise if this means no device on any machine."""
    known = ("cpu", "cuda", "torch", "auto")
    if device not in known and not str(device).startswith("cuda:"):
        raise ValueError(
            f'device={device!r}; expected "cpu" (NumPy), "cuda" or "cuda:1" (a GPU), "torch" '
            '(torch on the CPU) or "auto". Others do not work in numbers of 64 bits.'
        )


def _whatever_is_there() -> str:
    try:
        found = "cuda" if import_module("torch").cuda.is_available() else "cpu"
    except ImportError:
        found = "cpu"
    logger.debug("device='auto' is %s here", "a CUDA GPU" if found == "cuda" else "NumPy")
    return found


def _look_for(device: str) -> None:
    torch = _torch(device)
    if not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r}, but torch {torch.__version__} finds no CUDA GPU here. Set "
            'device="cpu", or "auto" to use a GPU wherever there is one.'
        )
    n, number = torch.cuda.device_count(), device.removeprefix("cuda").removeprefix(":")
    if device != "cuda" and not (number.isdigit() and int(number) < n):
        raise ValueError(f"device={device!r}; the GPUs here are 'cuda:0' to 'cuda:{n - 1}'.")


def _torch(device: str) -> Any:
    try:
        return import_module("torch")
    except ImportError as missing:
        raise ImportError(
            f"device={device!r} needs torch, which is not installed; pip install 'emgpr[torch]', "
            'or set device="cpu".'
        ) from missing


def put(a: Shaped[np.ndarray, "*s"], device: str) -> Shaped[Array, "*s"]:
    """A NumPy array, brought to a device that was settled; a copy, unless that is the CPU."""
    if device == "cpu":
        return a
    return _moved(a, _torch(device), "cpu" if device == "torch" else device)


def like(a: Shaped[np.ndarray, "*s"], there: Array) -> Shaped[Array, "*s"]:
    """A NumPy array, brought to where another array is."""
    if isinstance(there, np.ndarray):
        return a
    return _moved(a, array_namespace(there), there.device)


def _moved(a: np.ndarray, torch: Any, device: Any) -> Any:
    # Of a copy: torch would share memory that is not its own, and take none that runs backwards.
    return torch.from_numpy(np.array(a, order="C")).to(device)


def fetch(a: Shaped[Array, "*s"]) -> Shaped[np.ndarray, "*s"]:
    """An array, brought back to NumPy."""
    return np.asarray(array_api_compat.to_device(a, "cpu"))


def room(device: str) -> float:
    """Bytes that one chunk of work may take: near the caches, or a share of a GPU's memory."""
    if not device.startswith("cuda"):
        return HOST_ROOM
    cuda = _torch(device).cuda
    free, _ = cuda.mem_get_info(device)
    unused = cuda.memory_reserved(device) - cuda.memory_allocated(device)
    return min(DEVICE_ROOM, (free + unused) / 4)


def panel(there: Array) -> int:
    """Numbers to work on at a time, where an array is: what the caches hold, or enough for a GPU.

    To a GPU a call is as dear as a pass over half a million numbers.
    """
    on_gpu = str(array_api_compat.device(there)).startswith("cuda")
    return DEVICE_PANEL if on_gpu else HOST_PANEL


def empty(there: Array, *shape: int) -> Array:
    """An array without content yet, where another array is."""
    device = array_api_compat.device(there)
    return array_namespace(there).empty(shape, dtype=there.dtype, device=device)


def zeros(there: Array, *shape: int) -> Array:
    """An array of zeros, where another array is."""
    device = array_api_compat.device(there)
    return array_namespace(there).zeros(shape, dtype=there.dtype, device=device)


def diagonal(A: Array, rows: int = -2, columns: int = -1) -> Array:
    """The diagonals over two axes as the last one: a view, so that A can be written through it."""
    if isinstance(A, np.ndarray):
        return np.einsum("...ii->...i", np.moveaxis(A, (rows, columns), (-2, -1)))
    return A.diagonal(dim1=rows, dim2=columns)

"""Packages that only some need: imported when first used, or an error that names the extra."""

from importlib import import_module
from typing import Any


def needed(module: str, purpose: str, extra: str = "geo") -> Any:
    """The module, or what to install.

    >>> needed("json", "Reading polygons").loads("[1]")
    [1]
    >>> needed("no_such", "Drawing")
    Traceback (most recent call last):
    ImportError: Drawing needs no_such: pip install 'emgpr[geo]'
    """
    try:
        return import_module(module)
    except ImportError as missing:
        name = module.partition(".")[0]
        raise ImportError(f"{purpose} needs {name}: pip install 'emgpr[{extra}]'") from missing

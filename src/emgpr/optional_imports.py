"""Import of optional packages when they are first used."""

from importlib import import_module
from typing import Any


def import_optional(module: str, purpose: str, extra: str = "geo") -> Any:
    """Import a module; if it is missing, raise an ImportError that says how to install it.

    >>> import_optional("json", "Reading polygons").loads("[1]")
    [1]
    >>> import_optional("no_such", "Drawing")
    Traceback (most recent call last):
    ImportError: Drawing needs no_such, which is not installed. Run pip install 'emgpr[geo]'.
    """
    try:
        return import_module(module)
    except ImportError as missing:
        package = module.partition(".")[0]
        raise ImportError(
            f"{purpose} needs {package}, which is not installed. Run pip install 'emgpr[{extra}]'."
        ) from missing

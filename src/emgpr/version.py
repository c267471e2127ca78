"""The version of the package; the only place where it is defined."""

__version__ = "0.1.0"

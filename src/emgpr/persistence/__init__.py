"""Files that outlive a session: arrays and JSON, checked before they are believed."""

from emgpr.persistence.container import ModelFileError, PathLike, read, write
from emgpr.persistence.state import decode, encode

__all__ = ["ModelFileError", "PathLike", "decode", "encode", "read", "write"]

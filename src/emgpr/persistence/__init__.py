"""Files that consist of arrays and JSON, verified before their content is used."""

from emgpr.persistence.container import ModelFileError, PathLike, read, write
from emgpr.persistence.state import constructors, decode, encode

__all__ = ["ModelFileError", "PathLike", "constructors", "decode", "encode", "read", "write"]

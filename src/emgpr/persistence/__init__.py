"""Files that consist of arrays and JSON, verified before their content is used."""

from emgpr.persistence.container import ModelFileError, read, write
from emgpr.persistence.replace import PathLike, check_replaceable, replacing
from emgpr.persistence.state import constructors, decode, encode

__all__ = [
    "ModelFileError",
    "PathLike",
    "check_replaceable",
    "constructors",
    "decode",
    "encode",
    "read",
    "replacing",
    "write",
]

"""Files that outlive a session: arrays and JSON, checked before they are believed."""

from emgpr.persistence.container import ModelFileError, PathLike, read, write

__all__ = ["ModelFileError", "PathLike", "read", "write"]

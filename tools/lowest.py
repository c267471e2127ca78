"""Print the lowest versions declared in pyproject.toml as constraints for pip.

The constraints cover the dependencies of the package and of its extras, except torch, whose old
releases for Linux on PyPI include gigabytes of CUDA libraries. pip chooses the versions of indirect
dependencies.
"""

import re
import tomllib
from itertools import chain
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
extras.pop("torch")
for requirement in chain(project["dependencies"], *extras.values()):
    if not requirement.startswith(
        project["name"]
    ):  # An extra can require another extra, such as emgpr[geo].
        name, least = re.match(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", requirement).groups()
        print(f"{name}=={least}")

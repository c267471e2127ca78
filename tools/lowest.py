"""The lowest versions that pyproject.toml declares, as constraints for pip.

Of what is installed with the package and its extras, torch apart: on PyPI, old releases of it for
Linux come with gigabytes of CUDA. What these bring themselves is left to pip.
"""

import re
import tomllib
from itertools import chain
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
extras.pop("torch")
for requirement in chain(project["dependencies"], *extras.values()):
    if not requirement.startswith(project["name"]):  # emgpr[geo]: its own extras again
        name, least = re.match(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", requirement).groups()
        print(f"{name}=={least}")

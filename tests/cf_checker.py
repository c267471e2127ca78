"""The CF compliance checker of the IOOS."""

import json
import subprocess
import sys

# In another process: it changes global settings. One for all files: it takes a second to start.
CODE = """
import sys
from compliance_checker.runner import CheckSuite, ComplianceChecker
CheckSuite.load_all_available_checkers()
for file in sys.argv[1:]:
    ComplianceChecker.run_checker(
        file, ["cf:1.11"], 0, "normal", output_filename=file + ".json", output_format="json"
    )
"""


def cf_errors(*files):
    """Return the errors and warnings that the checker finds in files: (file, check, messages)."""
    subprocess.run([sys.executable, "-c", CODE, *map(str, files)], check=True)
    errors = []
    for file in files:
        report = json.loads(file.with_name(f"{file.name}.json").read_text())["cf:1.11"]
        assert report["high_priorities"], "nothing was checked"
        errors += [
            (file.name, check["name"], check["msgs"])
            for level in ("high_priorities", "medium_priorities")
            for check in report[level]
            if check["msgs"]
        ]
    return errors

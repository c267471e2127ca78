"""The compliance checker of the IOOS, asked about a file."""

import json
import subprocess
import sys


def cf_errors(file):
    """What the checker of the IOOS says is wrong, or should be better."""
    report = file.with_suffix(".json")
    code = (
        "import sys; from compliance_checker.runner import ComplianceChecker, CheckSuite; "
        "CheckSuite.load_all_available_checkers(); "
        "ComplianceChecker.run_checker(sys.argv[1], ['cf:1.11'], 0, 'normal', "
        "output_filename=sys.argv[2], output_format='json')"
    )
    subprocess.run([sys.executable, "-c", code, str(file), str(report)], check=True)
    found = json.loads(report.read_text())["cf:1.11"]
    assert found["high_priorities"], "the checker looked at nothing"
    return [
        (check["name"], check["msgs"])
        for level in ("high_priorities", "medium_priorities")
        for check in found[level]
        if check["msgs"]
    ]

"""One HTML file that says what was measured, what was learned from it, and how far to trust it.

It opens anywhere, offline: pictures, maps and the script that answers the pointer are in it, and
nothing is fetched. Needs the extra `report` (jinja2).
"""

from emgpr.report.page import write_report
from emgpr.report.provenance import checksum

__all__ = ["checksum", "write_report"]

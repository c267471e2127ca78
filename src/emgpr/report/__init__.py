"""A report on a fitted model, with its data, accuracy, maps and settings, as one HTML file.

The file opens offline in any browser, because all images and scripts are embedded in it. This
package requires jinja2, which is installed with `emgpr[report]`. The columns of the tables are
defined in `columns.py`.
"""

from emgpr.report.page import write_report
from emgpr.report.provenance import checksum

__all__ = ["checksum", "write_report"]

"""The command line: `python -m emgpr`."""

from emgpr.cli import app

if __name__ == "__main__":
    app(prog_name="emgpr")

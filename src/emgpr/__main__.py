"""`python -m emgpr`: the command line."""

from emgpr.cli import app

if __name__ == "__main__":
    app(prog_name="emgpr")

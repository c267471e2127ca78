"""Frozen behaviour is that of the package as users run it."""

import beartype
import jaxtyping
import pytest

import emgpr.estimators  # noqa: F401  # with their checks, which other tests in this process want


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """Without the run-time checks of shapes, which would take most of the time."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    monkeypatch.setattr(beartype, "beartype", lambda function: function)

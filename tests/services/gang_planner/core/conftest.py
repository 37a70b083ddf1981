"""Every trial of the core is checked in every test here: it must leave the state as it was."""

import pytest

from tests.services.gang_planner.core.exact_trials import Counts, checked


@pytest.fixture(autouse=True)
def exact_trials(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """How many trials were checked, by kind."""
    return checked(monkeypatch)

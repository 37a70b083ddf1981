import pytest

from services.controller.config import ControllerSettings
from shared.runtime.settings import SettingsError, parse


def test_controllers_are_a_list_by_commas() -> None:
    settings = parse(ControllerSettings, ["--controllers=status,podgroup"], {})
    assert settings.controllers == ("status", "podgroup")


def test_an_unknown_controller_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(SettingsError, match=r"unknown: flow; there are: podgroup, status"):
        parse(ControllerSettings, ["--controllers=status,flow"], {})


def test_no_controller_at_all_is_refused() -> None:
    with pytest.raises(SettingsError, match="none given"):
        parse(ControllerSettings, ["--controllers="], {})

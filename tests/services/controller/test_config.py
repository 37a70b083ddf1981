import pytest

from services.controller.config import ControllerSettings
from shared.runtime.settings import SettingsError, parse


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        pytest.param("status,podgroup", ("podgroup", "status"), id="a list by commas"),
        pytest.param("pg-controller", ("podgroup", "workload"), id="a name of Volcano's"),
        pytest.param("+pg-controller,status", ("podgroup", "status", "workload"), id="with a plus"),
        pytest.param("podgroup,-status,status", ("podgroup",), id="a minus wins"),
    ],
)
def test_controllers_are_chosen_by_name(given: str, chosen: tuple[str, ...]) -> None:
    settings = parse(ControllerSettings, [f"--controllers={given}"], {})
    assert settings.chosen() == chosen


def test_a_star_is_all_of_them_and_a_minus_takes_one_away() -> None:
    everything = parse(ControllerSettings, ["--controllers=*"], {}).chosen()
    assert {"podgroup", "status"} <= set(everything)
    without = parse(ControllerSettings, ["--controllers=*,-pg-controller"], {}).chosen()
    assert set(everything) - set(without) == {"podgroup", "workload"}


def test_an_unknown_controller_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(SettingsError, match=r"unknown: flow; there are: .*podgroup, .*status"):
        parse(ControllerSettings, ["--controllers=status,flow"], {})


@pytest.mark.parametrize("given", ["", "status,-status"])
def test_no_controller_at_all_is_refused(given: str) -> None:
    with pytest.raises(SettingsError, match="none given"):
        parse(ControllerSettings, [f"--controllers={given}"], {})

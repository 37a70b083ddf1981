"""compose.yaml starts services with flags and variables that they accept."""

import importlib
import pathlib
from typing import Any

import pytest
import yaml

from shared.runtime.settings import CommonSettings, parse

_ROOT = pathlib.Path(__file__).parents[2]
_COMPOSE: dict[str, Any] = yaml.safe_load((_ROOT / "compose.yaml").read_text(encoding="utf-8"))
_PYTHON = {
    name: service
    for name, service in _COMPOSE["services"].items()
    if str(service.get("command", [""])[0]) == "python"
}
_SERVICES = [name for name in _PYTHON if name != "setup"]


def _settings_type(module: str) -> type[CommonSettings]:
    config = importlib.import_module(f"{module}.config")
    found = [
        value
        for value in vars(config).values()
        if isinstance(value, type)
        and issubclass(value, CommonSettings)
        and value.__module__ == config.__name__
    ]
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("name", _SERVICES)
def test_a_service_accepts_its_flags_and_variables(name: str) -> None:
    service = _PYTHON[name]
    _, _, module, *flags = service["command"]
    settings = parse(_settings_type(module), flags, service.get("environment", {}))
    assert settings.nats_url == "nats://nats:4222"


def test_every_service_of_the_suite_is_started() -> None:
    started = {service["command"][2] for service in _PYTHON.values()}
    folders = {f"services.{path.parent.name}" for path in _ROOT.glob("services/*/__main__.py")}
    assert started == folders | {"shared.bus.setup"}


def test_the_planner_is_given_no_credentials_for_the_cluster() -> None:
    for name, service in _PYTHON.items():
        planner = service["command"][2] == "services.gang_planner"
        has_credentials = "TUTTI_KUBECONFIG" in service.get("environment", {})
        assert has_credentials != (planner or name == "setup")


def test_the_planners_decide_by_the_same_settings() -> None:
    planners = [one for one in _PYTHON.values() if one["command"][2] == "services.gang_planner"]
    first, second = (one["environment"] for one in planners)
    assert first == second
    assert {"TUTTI_PREFLIGHT", "TUTTI_REPAIR_DEADLINE_S", "TUTTI_HOLD_S"} <= first.keys()


def test_what_a_service_refers_to_exists() -> None:
    for service in _COMPOSE["services"].values():
        assert set(service.get("depends_on", {})) <= set(_COMPOSE["services"])
        assert set(service.get("secrets", [])) <= set(_COMPOSE["secrets"])

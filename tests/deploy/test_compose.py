"""compose.yaml starts services with flags and variables that they accept, and fits together."""

import importlib
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from shared.bus.permissions import users
from shared.runtime.settings import CommonSettings, parse
from tutti.nats_server import find_nats_server
from tutti.provision.command import provision
from tutti.provision.stores import provision_folder as provide

_ROOT = Path(__file__).parents[2]
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


def _settings(name: str) -> CommonSettings:
    service = _PYTHON[name]
    _, _, module, *flags = service["command"]
    return parse(_settings_type(module), flags, service.get("environment", {}))


@pytest.mark.parametrize("name", _SERVICES)
def test_a_service_accepts_its_flags_and_variables_and_is_given_its_own_key(name: str) -> None:
    settings = _settings(name)
    assert settings.nats_url == "tls://nats:4222"
    user = settings.nats_user or _PYTHON[name]["command"][2].removeprefix("services.")
    user = user.replace("_", "-")
    (keys,) = (one for one in _PYTHON[name]["volumes"] if one["target"] == "/etc/tutti/nats")
    assert keys["volume"]["subpath"] == user
    assert user in {one.name for one in users()}
    for path in (settings.nats_credentials, settings.nats_ca):
        assert Path(path).parent == Path(keys["target"])


def test_every_service_of_the_suite_is_started() -> None:
    started = {service["command"][2] for service in _PYTHON.values()}
    folders = {f"services.{path.parent.name}" for path in _ROOT.glob("services/*/__main__.py")}
    # The observer has no place beside a suite that acts.
    assert started == (folders - {"services.observer"}) | {"shared.bus.setup"}


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
        assert {one["source"] for one in service.get("configs", [])} <= set(_COMPOSE["configs"])
        for volume in service.get("volumes", []):
            source = volume["source"] if isinstance(volume, dict) else volume.partition(":")[0]
            known = source in _COMPOSE["volumes"]
            assert known or (_ROOT / source).is_file(), source


def test_metrics_of_all_services_are_collected() -> None:
    prometheus = yaml.safe_load(_COMPOSE["configs"]["prometheus"]["content"])
    (job,) = prometheus["scrape_configs"]
    (targets,) = (one["targets"] for one in job["static_configs"])
    assert sorted(targets) == sorted(f"{name}:{_settings(name).http_port}" for name in _SERVICES)


def test_nats_takes_its_configuration_with_what_is_provisioned(tmp_path: Path) -> None:
    """The very command of the file is read, and the real server checks what it makes."""
    _, _, *flags = _COMPOSE["services"]["provision"]["command"]
    given = provision.make_context("provision", flags).params
    provide(tmp_path / "keys", users(), given["addresses"])
    (tmp_path / "server").symlink_to(tmp_path / "keys" / "server")
    text = _COMPOSE["configs"]["nats"]["content"]
    assert "$" not in text
    text = text.replace("/etc/nats", str(tmp_path)).replace("/data", str(tmp_path / "data"))
    (tmp_path / "nats.conf").write_text(text, "utf-8")
    done = subprocess.run(
        [find_nats_server(), "-t", "--config", tmp_path / "nats.conf"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_provision_without_an_address_is_refused() -> None:
    with pytest.raises(click.UsageError, match="--address"):
        provision.main(["--folder=anywhere"], standalone_mode=False)


@pytest.mark.certify
@pytest.mark.timeout(900)
def test_the_compose_specifications_own_loader_takes_the_file(compose_loader: Path) -> None:
    loader = [str(compose_loader), "compose.yaml"]
    done = subprocess.run(loader, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = yaml.safe_load(done.stdout)
    assert loaded["services"].keys() == _COMPOSE["services"].keys()
    broken = subprocess.run(
        [*loader[:1], "-"],
        cwd=_ROOT,
        input=(_ROOT / "compose.yaml").read_text().replace("cap_drop", "cap_dropp"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "cap_dropp" in broken.stderr

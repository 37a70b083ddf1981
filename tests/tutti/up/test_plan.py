"""What `tutti up` starts, checked against what the services accept."""

import importlib
from pathlib import Path

import msgspec
import pytest

from shared.runtime.settings import CommonSettings, KubeSettings, parse
from tutti.up.options import SERVICES, UpOptions
from tutti.up.plan import plan
from tutti.up.processes import ProcessSpec

_URL = "nats://127.0.0.1:1"
_FULL = UpOptions(
    kubeconfig="/kubeconfig",
    context="here",
    scheduler_names=("one", "two"),
    scheduler_conf="/conf",
    admission_conf="/admission",
    webhook_port=9443,
    api=True,
    api_port=9444,
    otlp_endpoint="http://127.0.0.1:4318",
    jaeger_url="http://127.0.0.1:16686",
    trace_ratio=0.25,
    replicas=dict.fromkeys(SERVICES, 2),
)


def settings_type(spec: ProcessSpec) -> type[CommonSettings]:
    module = importlib.import_module(f"{spec.module}.config")
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, CommonSettings)
        and each.__module__ == module.__name__
    ]
    assert len(found) == 1, f"{module.__name__} has {len(found)} settings"
    return found[0]


def settings(spec: ProcessSpec) -> CommonSettings:
    return parse(settings_type(spec), spec.flags, {})


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_accepts_the_flags_it_is_started_with(service: str, tmp_path: Path) -> None:
    specs = [
        spec for spec in plan(_FULL, nats_url=_URL, data_dir=tmp_path) if spec.service == service
    ]
    assert [spec.title for spec in specs] == [f"{service}-0", f"{service}-1"]
    for spec in specs:
        found = settings(spec)
        assert found.nats_url == _URL
        assert found.instance == spec.title
        assert found.ordinal == spec.ordinal
        assert found.otlp_endpoint == "http://127.0.0.1:4318"
        assert found.trace_ratio == 0.25
        assert found.http_host == "127.0.0.1"
        if isinstance(found, KubeSettings):
            assert (found.kubeconfig, found.context) == ("/kubeconfig", "here")
        assert getattr(found, "scheduler_name", ("one", "two")) == ("one", "two")


@pytest.mark.parametrize("service", ["watcher", "admission-webhook", "api"])
def test_services_that_judge_pods_know_our_scheduler_names(service: str, tmp_path: Path) -> None:
    for spec in plan(_FULL, nats_url=_URL, data_dir=tmp_path):
        if spec.service == service:
            assert msgspec.to_builtins(settings(spec))["scheduler_name"] == ("one", "two")


def test_the_api_service_knows_jaegers_address(tmp_path: Path) -> None:
    given = [
        spec for spec in plan(_FULL, nats_url=_URL, data_dir=tmp_path) if spec.service == "api"
    ]
    assert given
    for spec in given:
        assert msgspec.to_builtins(settings(spec))["jaeger_url"] == "http://127.0.0.1:16686"
    without = plan(UpOptions(), nats_url=_URL, data_dir=tmp_path)
    assert not any("jaeger" in flag for spec in without for flag in spec.flags)


def test_every_service_accepts_the_flags_of_a_bare_start(tmp_path: Path) -> None:
    for spec in plan(UpOptions(), nats_url=_URL, data_dir=tmp_path):
        assert settings(spec).otlp_endpoint == ""


def test_the_planner_gets_no_credentials(tmp_path: Path) -> None:
    planners = [
        spec
        for spec in plan(_FULL, nats_url=_URL, data_dir=tmp_path)
        if spec.service == "gang-planner"
    ]
    assert planners
    for spec in planners:
        assert not issubclass(settings_type(spec), KubeSettings)
        assert not any("kubeconfig" in flag for flag in spec.flags)
        assert msgspec.to_builtins(settings(spec))["scheduler_conf"] == "/conf"


@pytest.mark.parametrize("podgroups", [True, False])
def test_watcher_and_controller_agree_on_the_creator_of_podgroups(
    podgroups: bool, tmp_path: Path
) -> None:
    specs = plan(UpOptions(), nats_url=_URL, data_dir=tmp_path, podgroups=podgroups)
    found = {
        spec.service: msgspec.to_builtins(settings(spec))
        for spec in specs
        if spec.service in {"watcher", "controller"}
    }
    assert found["watcher"]["podgroup_controller"] is podgroups
    assert found["controller"]["controllers"] == (("*",) if podgroups else ("status",))


def test_output_goes_to_logs_and_with_verbose_to_our_standard_error(tmp_path: Path) -> None:
    quiet = plan(UpOptions(), nats_url=_URL, data_dir=tmp_path)
    assert {spec.log for spec in quiet} == {
        tmp_path / "logs" / f"{spec.title}.log" for spec in quiet
    }
    loud = plan(UpOptions(verbose=True), nats_url=_URL, data_dir=tmp_path)
    assert {spec.log for spec in loud} == {None}
    assert {settings(spec).log_format for spec in loud} == {"text"}


@pytest.mark.parametrize(("service", "port"), [("admission-webhook", 9443), ("api", 9444)])
def test_only_the_first_replica_listens_on_the_port_that_was_asked_for(
    service: str, port: int, tmp_path: Path
) -> None:
    found = [
        msgspec.to_builtins(settings(spec))
        for spec in plan(_FULL, nats_url=_URL, data_dir=tmp_path)
        if spec.service == service
    ]
    assert [each["port"] for each in found] == [port, 0]
    assert len({each["cert_dir"] for each in found}) == 2


def test_an_observer_accepts_its_flags_and_nothing_beside_it_knows_the_binders(
    tmp_path: Path,
) -> None:
    options = UpOptions(observe=True, kubeconfig="/kubeconfig", report=Path("/report.json"))
    specs = plan(options, nats_url=_URL, data_dir=tmp_path, podgroups=False)
    assert [spec.title for spec in specs] == [
        "watcher-0",
        "gang-planner-0",
        "gang-planner-1",
        "observer-0",
    ]
    found = settings(specs[-1])
    assert getattr(found, "report_file", "") == "/report.json"
    assert not isinstance(found, KubeSettings), "it has no credentials"

"""deploy/tutti.yaml, and so the chart, fits the code: arguments, ports, rights, security."""

import argparse
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from services.admission_webhook.config import WebhookSettings
from services.api.config import ApiSettings
from services.controller.config import CONTROLLERS, ControllerSettings
from services.gang_planner.config import PlannerSettings
from services.watcher.config import WatcherSettings
from shared.bus import setup
from shared.bus.permissions import users
from shared.contracts import visibility, visibility_resources
from shared.kube.leases import PLANNER_LEASE
from shared.runtime.settings import CommonSettings, parse
from tests.deploy.rendered import CHART, FILE, NAMESPACE, RELEASE, objects
from tests.deploy.values import comments_of, documented_values
from tutti.cli import main as tutti
from tutti.rights.rules import rules
from tutti.rights.table import ACCOUNTS, Account

Manifest = dict[str, Any]
_OBJECTS = list(objects(FILE.read_text("utf-8")))


def of_kind(*kinds: str) -> list[Manifest]:
    return [one for one in _OBJECTS if one["kind"] in kinds]


def named(kind: str, name: str) -> Manifest:
    (found,) = (one for one in of_kind(kind) if one["metadata"]["name"] == name)
    return found


def pods() -> Iterator[tuple[str, Manifest]]:
    """Name and pod spec of everything that makes pods."""
    for one in of_kind("Deployment", "StatefulSet", "Job"):
        yield one["metadata"]["name"], one["spec"]["template"]["spec"]
    for one in of_kind("CronJob"):
        yield one["metadata"]["name"], one["spec"]["jobTemplate"]["spec"]["template"]["spec"]


_PODS = dict(pods())
_CONTAINERS = [
    pytest.param(spec, container, id=f"{name}-{container['name']}")
    for name, spec in _PODS.items()
    for container in spec["containers"]
]
_SERVICES = {
    name: container
    for name, spec in _PODS.items()
    for container in spec["containers"]
    if container["command"][-1].startswith("services.")
}


def settings_of(container: Manifest) -> CommonSettings:
    """What the service makes of the container's arguments; an unknown one is an error."""
    config = importlib.import_module(f"{container['command'][-1]}.config")
    (kind,) = (
        value
        for value in vars(config).values()
        if isinstance(value, type)
        and issubclass(value, CommonSettings)
        and value.__module__ == config.__name__
    )
    arguments = [one.replace("$(POD_IP)", "10.0.0.1") for one in container["args"]]
    variables = {
        one["name"]: "some-pod" for one in container["env"] if one["name"] == "TUTTI_INSTANCE"
    }
    return parse(kind, arguments, variables)


def test_every_service_and_nothing_else_runs() -> None:
    folders = {
        f"services.{path.parent.name}"
        for path in (CHART.parents[1] / "services").glob("*/__main__.py")
    }
    # The observer has no place beside a suite that acts: `tutti up --observe` starts it.
    assert {one["command"][-1] for one in _SERVICES.values()} == folders - {"services.observer"}


@pytest.mark.parametrize("name", _SERVICES)
def test_a_service_takes_its_arguments_and_listens_where_it_is_looked_for(name: str) -> None:
    container = _SERVICES[name]
    settings = settings_of(container)
    (port,) = (one for one in container["ports"] if one["name"] == "http")
    assert settings.http_port == port["containerPort"]
    assert settings.http_host == "10.0.0.1"
    assert settings.nats_user in {user.name for user in users()}
    assert settings.nats_user == name.removeprefix(f"{RELEASE}-")
    assert settings.instance == "some-pod"
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    assert [container[one]["httpGet"]["path"] for one in probes] == [
        "/healthz",
        "/healthz",
        "/readyz",
    ]


def test_all_serve_the_same_schedulers_and_one_of_the_controllers_knows_bare_pods() -> None:
    settings = {name: settings_of(container) for name, container in _SERVICES.items()}
    watcher, webhook = settings["tutti-watcher"], settings["tutti-admission-webhook"]
    status, jobs = (settings[f"tutti-controller-{part}"] for part in ("status", "jobs"))
    assert isinstance(watcher, WatcherSettings)
    assert isinstance(webhook, WebhookSettings)
    assert isinstance(status, ControllerSettings)
    assert isinstance(jobs, ControllerSettings)
    for one in (watcher, webhook, status, jobs):
        assert one.scheduler_name == ("tutti", "kube-batch", "volcano")
    assert status.chosen() == ("status",)
    assert jobs.chosen() == tuple(sorted(set(CONTROLLERS) - {"status"}))
    assert watcher.podgroup_controller


def test_planners_hold_one_of_the_consumers_that_setup_makes() -> None:
    settings = settings_of(_SERVICES["tutti-gang-planner"])
    assert isinstance(settings, PlannerSettings)
    spec = named("Deployment", "tutti-gang-planner")["spec"]
    surge = spec["strategy"]["rollingUpdate"]["maxSurge"]
    assert settings.consumer_sets > spec["replicas"] + surge, "none is left for a lost node's pod"
    for name in _PODS:
        if "-streams" in name or "-provision" in name:
            (container,) = _PODS[name]["containers"]
            assert f"--planners={settings.consumer_sets}" in container["args"]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_replicas_are_counted_by_revision_and_leave_a_dead_node_if_they_can(kind: str) -> None:
    revision = {"Deployment": "pod-template-hash", "StatefulSet": "controller-revision-hash"}[kind]
    for one in of_kind(kind):
        spec = one["spec"]["template"]["spec"]
        (node,) = spec["topologySpreadConstraints"]
        assert (node["topologyKey"], node["matchLabelKeys"]) == (
            "kubernetes.io/hostname",
            [revision],
        )
        lost = {"node.kubernetes.io/not-ready": 5, "node.kubernetes.io/unreachable": 5}
        assert {
            toleration["key"]: toleration["tolerationSeconds"]
            for toleration in spec.get("tolerations", ())
        } == (lost if kind == "Deployment" else {})


def test_the_webhooks_service_leads_to_its_port_and_its_configurations_have_an_owner() -> None:
    settings = settings_of(_SERVICES["tutti-admission-webhook"])
    assert isinstance(settings, WebhookSettings)
    service = named("Service", settings.service_name)
    (port,) = service["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (443, settings.port)
    assert settings.service_namespace == service["metadata"]["namespace"] == NAMESPACE
    named("ClusterRole", settings.owner_cluster_role)
    rights = {one.name: one for one in ACCOUNTS}["admission-webhook"].rights
    granted = {name for right in rights for name in right.names}
    assert settings.configuration_name in {one.replace("RELEASE", RELEASE) for one in granted}


def test_the_apis_service_leads_to_its_port_and_its_registration_has_an_owner() -> None:
    settings = settings_of(_SERVICES["tutti-api"])
    assert isinstance(settings, ApiSettings)
    assert settings.register
    assert not settings.external
    service = named("Service", settings.service_name)
    (port,) = service["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (settings.service_port, settings.port)
    assert settings.service_namespace == service["metadata"]["namespace"] == NAMESPACE
    named("ClusterRole", settings.owner_cluster_role)


@pytest.mark.parametrize("name", [name for name in _PODS if "-streams" in name])
def test_the_streams_job_gets_the_flags_that_it_knows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (container,) = _PODS[name]["containers"]
    seen: list[argparse.Namespace] = []

    async def noted(arguments: argparse.Namespace) -> None:
        seen.append(arguments)

    monkeypatch.setattr(setup, "_main", noted)
    assert container["command"] == ["python", "-m", "shared.bus.setup"]
    assert setup.main(container["args"]) == 0
    assert (seen[0].planners, seen[0].webhooks, seen[0].apis, seen[0].replicas) == (5, 3, 3, 1)


@pytest.mark.parametrize(("_spec", "container"), _CONTAINERS)
def test_a_command_of_ours_has_the_options_that_it_is_given(
    _spec: Manifest, container: Manifest, tmp_path: Path
) -> None:
    if container["command"][0] != "tutti":
        return
    command: click.Command = tutti
    context = click.Context(command)
    words = [*container["command"][1:], *container.get("args", ())]
    words = [str(tmp_path) if word.startswith("/") else word for word in words]
    while isinstance(command, click.Group):
        found = command.get_command(context, words.pop(0))
        assert found is not None, container["command"]
        command, context = found, click.Context(found, parent=context)
    command.parse_args(context, words)


@pytest.mark.parametrize("account", ACCOUNTS, ids=lambda account: account.name)
def test_an_account_has_the_rights_of_the_table_and_no_others(account: Account) -> None:
    name = f"{RELEASE}-{account.name}"
    bound = [
        one
        for one in of_kind("ClusterRoleBinding", "RoleBinding")
        if any(subject["name"] == name for subject in one["subjects"])
    ]
    granted = {
        one["kind"]: named(one["roleRef"]["kind"], one["roleRef"]["name"])["rules"] for one in bound
    }
    expected = {
        "ClusterRoleBinding": rules(one for one in account.rights if not one.namespaced),
        "RoleBinding": rules(one for one in account.rights if one.namespaced),
    }
    text = yaml.safe_dump({kind: one for kind, one in expected.items() if one})
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    served = "\n  - ".join(values["schedulerNames"])
    text = text.replace("RELEASE", RELEASE).replace("SCHEDULER_NAMES", served)
    assert granted == yaml.safe_load(text)
    assert len(bound) == len(granted)


def test_every_user_may_read_the_planners_lease_ask_the_api_and_nothing_else() -> None:
    bound = [
        one
        for one in of_kind("ClusterRoleBinding", "RoleBinding")
        if one["subjects"][0]["kind"] == "Group"
    ]
    assert {one["subjects"][0]["name"] for one in bound} == {"system:authenticated"}
    granted = {
        one["roleRef"]["name"]: named("ClusterRole", one["roleRef"]["name"])["rules"]
        for one in bound
    }
    assert granted.keys() == {"tutti-everybody", "tutti-api-users"}
    (lease,) = granted["tutti-everybody"]
    assert lease["resourceNames"] == [PLANNER_LEASE]
    assert lease["verbs"] == ["get", "list"]
    asked = {
        (group, plural, verb)
        for one in granted["tutti-api-users"]
        for group in one["apiGroups"]
        for plural in one["resources"]
        for verb in one["verbs"]
    }
    assert asked == {
        (visibility.GROUP, one.plural, verb)
        for one in visibility_resources.RESOURCES
        for verb in one.verbs
    }
    # An upgrade must not undo what the controller renews.
    assert "spec" not in named("Lease", PLANNER_LEASE)


def test_only_the_known_accounts_are_bound_to_a_role() -> None:
    for one in of_kind("ClusterRoleBinding", "RoleBinding"):
        (subject,) = one["subjects"]
        if subject["kind"] == "Group":
            continue
        assert subject["kind"] == "ServiceAccount"
        assert subject["name"].removeprefix(f"{RELEASE}-") in {one.name for one in ACCOUNTS}


@pytest.mark.parametrize("name", ["tutti-gang-planner", "tutti-nats"])
def test_a_service_without_rights_has_no_token(name: str) -> None:
    spec = _PODS[name]
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec


@pytest.mark.parametrize(("spec", "container"), _CONTAINERS)
def test_a_container_can_change_nothing_and_gain_no_privilege(
    spec: Manifest, container: Manifest
) -> None:
    security = spec["securityContext"]
    assert security["runAsNonRoot"]
    assert security["runAsUser"] > 0
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]
    assert spec["priorityClassName"] == "system-cluster-critical"
    assert not spec.keys() & {"hostNetwork", "hostPID", "hostIPC"}
    assert all("hostPath" not in volume for volume in spec.get("volumes", ()))


@pytest.mark.parametrize(("spec", "container"), _CONTAINERS)
def test_files_that_are_named_are_mounted(spec: Manifest, container: Manifest) -> None:
    volumes = {one["name"] for one in spec.get("volumes", ())}
    if "volumeClaimTemplates" in named_set(spec):
        volumes.add("data")
    mounts = [one["mountPath"] for one in container.get("volumeMounts", ())]
    assert {one["name"] for one in container.get("volumeMounts", ())} <= volumes
    for argument in container.get("args", ()):
        path = argument.rpartition("=")[2]
        if path.startswith("/"):
            assert any(path == one or path.startswith(f"{one}/") for one in mounts), argument


def named_set(spec: Manifest) -> Manifest:
    """The spec of the StatefulSet with this pod, or nothing."""
    for one in of_kind("StatefulSet"):
        if one["spec"]["template"]["spec"] is spec:
            return dict(one["spec"])
    return {}


def test_what_selects_pods_finds_some() -> None:
    labels = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in of_kind("Deployment", "StatefulSet", "Job")
    ]
    selectors = [
        *(one["spec"]["selector"] for one in of_kind("Service")),
        *(one["spec"]["selector"]["matchLabels"] for one in of_kind("PodDisruptionBudget")),
        *(one["spec"]["podSelector"]["matchLabels"] for one in of_kind("NetworkPolicy")),
    ]
    assert len(selectors) > 10
    for selector in selectors:
        assert any(selector.items() <= one.items() for one in labels), selector


def test_every_value_is_documented_and_checked() -> None:
    schema = yaml.safe_load((CHART / "values.schema.json").read_text("utf-8"))
    text = (CHART / "values.yaml").read_text("utf-8")
    assert shape(yaml.safe_load(text), schema) == []
    assert [path for path, _, comment in documented_values() if not comment] == []
    assert set(yaml.safe_load((CHART / "values-ha.yaml").read_text("utf-8"))) < set(
        yaml.safe_load(text)
    )


def test_a_value_without_a_comment_or_a_rule_is_found() -> None:
    assert comments_of("# a\na:\n  # b\n  # c\n  b: 1\n  c: 2\n") == {"a": "a", "a.b": "b c"}
    schema = {"properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    assert shape({"b": 1}, schema) == ["a is missing", "b has no rule"]


def shape(values: Manifest, schema: Manifest) -> list[str]:
    """Where keys of values and of their schema differ."""
    if "properties" not in schema:
        return []
    assert schema["additionalProperties"] is False
    known = {name for name in schema["properties"] if name != "global"}
    found = [f"{name} is missing" for name in sorted(known - values.keys())]
    found += [f"{name} has no rule" for name in sorted(values.keys() - known)]
    for name in sorted(values.keys() & known):
        if isinstance(values[name], dict):
            found += [f"{name}.{one}" for one in shape(values[name], schema["properties"][name])]
    return found


def test_the_chart_has_the_programs_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    project = Path(CHART.parents[1] / "pyproject.toml").read_text("utf-8")
    assert f'\nversion = "{chart["appVersion"]}"\n' in project

"""What each value of the chart changes, and what values.schema.json refuses."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.console.files import API_PATH, ROOT_PATH
from tests.deploy.rendered import CHART, objects, rendered

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

Manifest = dict[str, Any]
_COMPONENTS = {
    "watcher": "watcher",
    "gang-planner": "planner",
    "binder": "binder",
    "controller-status": "controllers.status",
    "controller-jobs": "controllers.jobs",
    "admission-webhook": "webhook",
    "api": "api",
    "nats": "nats",
}
_JOBS = ("crds", "provision", "streams")
_OWN = {
    "nodeSelector": {"pool": "own"},
    "tolerations": [{"key": "own", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "topologySpreadConstraints": [
        {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
    ],
    "priorityClassName": "own",
    "podLabels": {"team": "own", "app.kubernetes.io/component": "ours"},
    "podAnnotations": {"note": "own"},
    "extraArgs": ["--log-level=debug"],
    "extraEnv": [{"name": "OWN", "value": "1"}],
    "volumes": [{"name": "own", "emptyDir": {}}],
    "volumeMounts": [{"name": "own", "mountPath": "/own"}],
    "podSecurityContext": {"runAsNonRoot": True, "runAsUser": 7},
    "containerSecurityContext": {"readOnlyRootFilesystem": True},
    "resources": {"requests": {"cpu": "7m"}},
}
_ALL = {
    "nodeSelector": {"pool": "all"},
    "tolerations": [{"key": "all", "operator": "Exists"}],
    "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "topologySpreadConstraints": [
        {"maxSkew": 3, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "priorityClassName": "all",
    "podLabels": {"team": "all", "cost": "all"},
    "podAnnotations": {"note": "all", "more": "all"},
    "extraEnv": [{"name": "ALL", "value": "1"}],
    "podSecurityContext": {"runAsNonRoot": True, "runAsUser": 8},
    "containerSecurityContext": {"runAsNonRoot": True},
    "commonLabels": {"owner": "platform"},
    "serviceAccount": {"annotations": {"role": "all", "kept": "all"}},
    "image": {
        "registry": "registry.example:5000",
        "digest": f"sha256:{'a' * 64}",
        "pullSecrets": [{"name": "pull"}],
    },
}


def _render(helm: Path, tmp_path: Path, values: Manifest, *flags: str) -> list[Manifest]:
    path = tmp_path / "values.yaml"
    path.write_text(json.dumps(values), "utf-8")
    return list(objects(rendered(helm, f"--values={path}", *flags)))


def _templates(found: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Component and pod template of everything that makes pods."""
    for one in found:
        if one["kind"] in {"Deployment", "StatefulSet", "Job"}:
            component = one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
            yield component, one["spec"]["template"]


def _nested(path: str, value: Manifest) -> Manifest:
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


def _merged(into: Manifest, more: Manifest) -> Manifest:
    for name, value in more.items():
        into[name] = _merged(into.get(name, {}), value) if isinstance(value, dict) else value
    return into


def test_every_pod_gets_the_settings_of_the_release(helm: Path, tmp_path: Path) -> None:
    found = dict(_templates(_render(helm, tmp_path, _ALL)))
    assert found.keys() == {*_COMPONENTS, *_JOBS}
    for component, template in found.items():
        spec, metadata = template["spec"], template["metadata"]
        assert spec["nodeSelector"] == {"pool": "all"}, component
        assert {"key": "all", "operator": "Exists"} in spec["tolerations"]
        assert spec["affinity"].keys() == {"podAffinity"}
        assert spec["priorityClassName"] == "all"
        assert spec["securityContext"]["runAsUser"] == 8
        assert spec["imagePullSecrets"] == [{"name": "pull"}]
        assert metadata["labels"].items() >= {"team": "all", "owner": "platform"}.items()
        assert metadata["annotations"].items() >= {"note": "all", "more": "all"}.items()
        constraints = spec.get("topologySpreadConstraints", ())
        assert [one["topologyKey"] for one in constraints] == ["zone"] * (component not in _JOBS)
        for container in spec["containers"]:
            assert container["securityContext"]["runAsNonRoot"]
            if container["name"] == "nats":
                assert container["image"].startswith("nats:")
                continue
            assert container["image"] == f"registry.example:5000/tutti@sha256:{'a' * 64}"
            if container["name"] != "reload":
                assert {"name": "ALL", "value": "1"} in container["env"], component


def test_a_service_has_settings_of_its_own(helm: Path, tmp_path: Path) -> None:
    values = json.loads(json.dumps(_ALL))
    for path in _COMPONENTS.values():
        _merged(values, _nested(path, _OWN))
    jobs = {name: one for name, one in _OWN.items() if name != "extraArgs"}
    _merged(values, {"setup": {k: v for k, v in jobs.items() if k != "topologySpreadConstraints"}})
    for component, template in _templates(_render(helm, tmp_path, values)):
        spec, metadata = template["spec"], template["metadata"]
        assert spec["nodeSelector"] == {"pool": "own"}, component
        assert {"key": "own", "operator": "Exists"} in spec["tolerations"]
        assert spec["affinity"].keys() == {"nodeAffinity"}
        assert spec["priorityClassName"] == "own"
        assert spec["securityContext"] == {"runAsNonRoot": True, "runAsUser": 7}
        assert metadata["labels"]["team"] == "own"
        assert metadata["labels"]["cost"] == "all"
        # The selector's labels are not the user's to change.
        assert metadata["labels"]["app.kubernetes.io/component"] == component
        assert metadata["annotations"].items() >= {"note": "own", "more": "all"}.items()
        assert {"name": "own", "emptyDir": {}} in spec["volumes"]
        container = spec["containers"][0]
        assert container["securityContext"] == {"readOnlyRootFilesystem": True}
        assert container["resources"]["requests"]["cpu"] == "7m"
        assert [one["name"] for one in container["env"]][-2:] == ["ALL", "OWN"]
        assert {"name": "own", "mountPath": "/own"} in container["volumeMounts"]
        if component not in _JOBS:
            assert container["args"][-1] == "--log-level=debug"
            (constraint,) = spec["topologySpreadConstraints"]
            assert constraint["topologyKey"] == "rack"


def test_names_and_labels_follow_the_overrides(helm: Path, tmp_path: Path) -> None:
    values = {"fullnameOverride": "gangs", "nameOverride": "scheduling", "commonLabels": {"a": "b"}}
    optional = {one: {"enabled": True} for one in ("serviceMonitor", "prometheusRule", "dashboard")}
    found = _render(helm, tmp_path, values | optional)
    lease = "tutti-gang-planner"
    for one in found:
        name = one["metadata"]["name"]
        assert name.startswith("gangs") or name == lease, name
        assert one["metadata"]["labels"]["app.kubernetes.io/name"] == "scheduling", name
        assert one["metadata"]["labels"]["a"] == "b", name
    labels = [template["metadata"]["labels"] for _, template in _templates(found)]
    for one in found:
        selector = one["spec"].get("selector") if one["kind"] == "Service" else None
        if selector:
            assert any(selector.items() <= of_pod.items() for of_pod in labels), one["metadata"]
    accounts = {one["metadata"]["name"] for one in found if one["kind"] == "ServiceAccount"}
    for _, template in _templates(found):
        assert template["spec"].get("serviceAccountName") in {*accounts, None}
    # Alerts and the dashboard have names of their own; the label of the chart has its version.
    ours = [one for one in found if one["kind"] not in {"ConfigMap", "PrometheusRule"}]
    assert re.findall(r'"tutti-(?!gang-planner"|\d).*?"', json.dumps(ours)) == []


def test_the_api_service_knows_jaegers_address(helm: Path, tmp_path: Path) -> None:
    def flags(values: Manifest) -> list[str]:
        containers = dict(_templates(_render(helm, tmp_path, values)))["api"]["spec"]["containers"]
        return [one for one in containers[0]["args"] if "jaeger" in one]

    address = "https://ops.example:16686/jaeger"
    assert flags({"api": {"jaegerUrl": address}}) == [f"--jaeger-url={address}"]
    assert flags({}) == []


def test_an_ingress_leads_browsers_to_the_console_and_its_api(helm: Path, tmp_path: Path) -> None:
    def ingresses(values: Manifest) -> list[Manifest]:
        found = _render(helm, tmp_path, {"api": {"ingress": values}})
        return [one for one in found if one["kind"] == "Ingress"]

    assert ingresses({}) == []
    tls = [{"secretName": "console-tls", "hosts": ["tutti.example"]}]
    annotations = {"nginx.ingress.kubernetes.io/backend-protocol": "HTTPS"}
    (made,) = ingresses(
        {
            "enabled": True,
            "className": "nginx",
            "annotations": annotations,
            "hosts": ["tutti.example", "*.second.example"],
            "tls": tls,
        }
    )
    assert made["metadata"]["annotations"] == annotations
    assert made["spec"]["ingressClassName"] == "nginx"
    assert made["spec"]["tls"] == tls
    rules = made["spec"]["rules"]
    assert [one["host"] for one in rules] == ["tutti.example", "*.second.example"]
    for rule in rules:
        paths = {one["path"]: one["backend"]["service"] for one in rule["http"]["paths"]}
        assert paths.keys() == {ROOT_PATH, API_PATH.removesuffix("/v1alpha1")}
        # The Service's own name of its only port.
        assert all(
            one == {"name": "tutti-api", "port": {"name": "https"}} for one in paths.values()
        )
    (plain,) = ingresses({"enabled": True, "hosts": ["tutti.example"]})
    assert plain["spec"].keys() == {"rules"}
    assert "annotations" not in plain["metadata"]


def test_accounts_have_annotations(helm: Path, tmp_path: Path) -> None:
    own = {"serviceAccount": {"annotations": {"role": "own"}}}
    found = _render(helm, tmp_path, _ALL | {"webhook": own, "setup": own})
    annotations = {
        one["metadata"]["name"].removeprefix("tutti-"): one["metadata"]["annotations"]
        for one in found
        if one["kind"] == "ServiceAccount"
    }
    assert annotations["watcher"] == {"role": "all", "kept": "all"}
    for name in ("admission-webhook", "crds", "provision"):
        assert annotations[name] == {"role": "own", "kept": "all"}


def test_drains_may_be_unlimited_or_limited_otherwise(helm: Path, tmp_path: Path) -> None:
    def budgets(values: Manifest) -> list[Any]:
        found = _render(helm, tmp_path, {"podDisruptionBudget": values})
        kind = "PodDisruptionBudget"
        return [one["spec"]["maxUnavailable"] for one in found if one["kind"] == kind]

    assert budgets({"enabled": False}) == []
    assert set(budgets({"maxUnavailable": "50%"})) == {"50%"}


def test_users_get_rights_on_every_kind_by_kubernetes_own_roles(helm: Path, tmp_path: Path) -> None:
    prefix = "rbac.authorization.k8s.io/aggregate-to-"

    def aggregated(values: Manifest) -> dict[str, set[tuple[str, str, str]]]:
        """Group, resource and verb of all rights that each of Kubernetes' roles gets."""
        found: dict[str, set[tuple[str, str, str]]] = {}
        for one in _render(helm, tmp_path, values):
            for label in one["metadata"]["labels"]:
                if label.startswith(prefix):
                    rights = found.setdefault(label.removeprefix(prefix), set())
                    rights |= {
                        (group, resource, verb)
                        for rule in one["rules"]
                        for group in rule["apiGroups"]
                        for resource in rule["resources"]
                        for verb in rule["verbs"]
                    }
        return found

    roles = aggregated({})
    assert aggregated({"rbac": {"aggregate": False}}) == {}
    assert roles["view"] < roles["edit"] == roles["admin"]
    crds = [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in _crds()]
    for crd in crds:
        kind = (crd["spec"]["group"], crd["spec"]["names"]["plural"])
        assert (*kind, "watch") in roles["view"]
        assert ((*kind, "create") in roles["edit"]) == (crd["spec"]["scope"] == "Namespaced"), kind


def _crds() -> list[Path]:
    return sorted((CHART.parent / "crds").rglob("*.yaml"))


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("watcher.affinity=x", "/watcher/affinity"),
        ("binder.extraArgs={log-level=debug}", "/binder/extraArgs/0"),
        ("api.extraEnv[0].value=x", "/api/extraEnv/0"),
        ("api.jaegerUrl=jaeger:16686", "/api/jaegerUrl"),
        ("api.jaegerUrl=javascript:alert(1)", "/api/jaegerUrl"),
        ("api.jaegerUrl=https://user:word@jaeger", "/api/jaegerUrl"),
        ("api.ingress.enabled=true", "/api/ingress/hosts"),
        ("api.ingress.hosts={https://tutti.example}", "/api/ingress/hosts/0"),
        ("api.ingress.host=tutti.example", "/api/ingress"),
        ("planner.volumes=x", "/planner/volumes"),
        ("commonLabels.a=1", "/commonLabels/a"),
        ("podDisruptionBudget.maxUnavailable=0", "/podDisruptionBudget/maxUnavailable"),
        ("podDisruptionBudget.maxUnavailable=x", "/podDisruptionBudget/maxUnavailable"),
        ("fullnameOverride=Tutti", "/fullnameOverride"),
        ("image.registry=https://registry.example", "/image/registry"),
        ("image.digest=sha256:1", "/image/digest"),
        ("image.repository=Tutti:latest", "/image/repository"),
        ("webhook.serviceAccount.name=x", "/webhook/serviceAccount"),
        ("controllers.jobs.topologySpreadConstraint=x", "topologySpreadConstraint"),
        ("rbac.aggregate=x", "/rbac/aggregate"),
        ("nats.resources.cpu=1", "/nats/resources"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(helm: Path, value: str, field: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        rendered(helm, f"--set={value}")
    assert field in raised.value.stderr


def test_without_an_image_helm_renders_nothing_and_says_where_one_comes_from(helm: Path) -> None:
    command = [str(helm), "template", "tutti", str(CHART), "--namespace=kube-system"]
    done = subprocess.run(command, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "image.repository: must be set, because no image of Tutti is published" in done.stderr
    assert "--set image.registry=REGISTRY,image.repository=tutti,image.tag=TAG" in done.stderr
    given = rendered(helm, "--set=image.repository=team/tutti,image.tag=x")
    assert "image: team/tutti:x" in given
    assert "image: tutti:" not in given

"""The chart in Helm's hands: linted, rendered, tried on the API server, installed and removed."""

import functools
import json
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import create_namespace, pod_manifest
from tests.deploy import sandbox
from tests.deploy.installing import Installing, installing
from tests.deploy.rendered import CHART, FILE, IMAGE, file_content, objects, rendered
from tests.support.waiting import eventually
from tutti.manifests.crds import default_names

pytestmark = pytest.mark.certify

_GROUPS: Final = "/apis/scheduling.volcano.sh/v1beta1"
_JOBS: Final = "/apis/batch.volcano.sh/v1alpha1"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_PATIENCE_S: Final = 120.0
_FLAGS: Final = ("--namespace=kube-system", IMAGE, "--wait", "--timeout=300s")
_TUTTI: Final = ("tutti", str(CHART), *_FLAGS)
#: Of other products, whose kinds a bare API server does not know.
_FOREIGN: Final = ("monitoring.coreos.com", "cert-manager.io")
_EVERYTHING: Final = (
    "--set=serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true",
    "--set=planner.schedulerConf=actions: allocate,webhook.admissionConf=resourceGroups: []",
    "--set=controllers.jobs.controllerConf=networkTopologyDiscovery: []",
    "--set=controllers.jobs.takeOver=true,crds.takeOver=true",
    "--set=tracing.otlpEndpoint=http://jaeger:4318/v1/traces",
    "--set=image.pullSecrets[0].name=registry,nodeSelector.a=b,watcher.nodeSelector.c=d",
    "--set=tolerations[0].operator=Exists",
    "--set=webhook.certificate.source=cert-manager,webhook.certificate.issuerRef.name=own",
)
_SETS: Final = {
    "defaults": (),
    "ha": (f"--values={CHART / 'values-ha.yaml'}",),
    "everything": _EVERYTHING,
    "external-nats": (
        "--set=nats.enabled=false,nats.external.url=tls://nats.example:4222",
        "--set=webhook.certificate.source=secret,webhook.certificate.secretName=given",
    ),
    "least": (
        "--set=controllers.jobs.enabled=false,webhook.enabled=false,crds.install=false",
        "--set=api.enabled=false",
        "--set=networkPolicies.enabled=false,nats.storage.persistent=false",
    ),
}


def test_the_rendered_file_is_current(helm: Path) -> None:
    assert FILE.read_text("utf-8") == file_content(helm), "make chart"


@pytest.mark.parametrize("flags", _SETS.values(), ids=_SETS.keys())
def test_helm_finds_nothing_to_say(helm: Path, flags: tuple[str, ...]) -> None:
    command = [str(helm), "lint", str(CHART), "--strict", IMAGE, *flags]
    done = subprocess.run(command, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("flags", _SETS.values(), ids=_SETS.keys())
def test_the_api_server_takes_everything(
    helm: Path, control_plane: ControlPlane, flags: tuple[str, ...]
) -> None:
    found = list(objects(rendered(helm, *flags)))
    known = [one for one in found if not one["apiVersion"].startswith(_FOREIGN)]
    assert len(known) > 20
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": known})
    printed = control_plane.kubectl(
        "apply", "--server-side", "--dry-run=server", "--filename=-", stdin=text
    )
    assert printed.count("(server dry run)") == len(known)


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("schedulerNames={}", "schedulerNames"),
        ("nats.replicas=2", "replicas"),
        ("planner.holdSeconds=-1", "holdSeconds"),
        ("tracing.ratio=1.5", "ratio"),
        ("plannner.replicas=2", "plannner"),
        ("webhook.certificate.source=none", "source"),
        ("image.digest=latest", "digest"),
        ("nats.enabled=false", "nats.external.url is needed"),
        ("webhook.certificate.source=secret", "webhook.certificate.secretName is needed"),
    ],
)
def test_values_that_break_a_rule_are_refused_by_name(helm: Path, flag: str, said: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        rendered(helm, f"--set={flag}")
    assert said in refused.value.stderr


def test_secrets_that_cert_manager_keeps_are_found_by_the_releases_label(helm: Path) -> None:
    chosen = ",".join(
        f"{service}.certificate.source=cert-manager,{service}.certificate.issuerRef.name=own"
        for service in ("webhook", "api")
    )
    printed = objects(rendered(helm, f"--set={chosen}"))
    certificates = [one["spec"] for one in printed if one["kind"] == "Certificate"]
    assert len(certificates) == 2
    for spec in certificates:
        assert spec["secretTemplate"]["labels"]["app.kubernetes.io/instance"] == "tutti"


@pytest.mark.parametrize(
    ("endpoint", "port"),
    [
        ("http://jaeger:4318/v1/traces", 4318),
        ("https://collector.example", 443),
        ("http://collector.example/otlp", 80),
    ],
)
def test_planners_reach_the_port_where_traces_go(helm: Path, endpoint: str, port: int) -> None:
    chosen = f"--set=tracing.otlpEndpoint={endpoint}"
    assert {"ports": [{"port": port}]} in _planners_egress(helm, chosen)
    peer = '--set-json=networkPolicies.tracesTo=[{"namespaceSelector":{}}]'
    assert _planners_egress(helm, chosen, peer)[-1] == {
        "ports": [{"port": port}],
        "to": [{"namespaceSelector": {}}],
    }
    assert _planners_egress(helm, peer) == _planners_egress(helm), "there are no traces"


def test_every_service_gets_the_same_share_of_traces(helm: Path) -> None:
    flags = ("--set=tracing.otlpEndpoint=http://jaeger:4318", "--set=tracing.ratio=0.25")
    printed = [
        container["args"]
        for one in objects(rendered(helm, *flags))
        if one["kind"] in {"Deployment", "StatefulSet"}
        for container in one["spec"]["template"]["spec"]["containers"]
        if container["command"][-1].startswith("services.")
    ]
    assert len(printed) == 7
    assert all("--trace-ratio=0.25" in args for args in printed)


def test_without_the_api_service_nothing_of_it_is_left_and_users_may_read_the_lease(
    helm: Path,
) -> None:
    def of_the_api(*flags: str) -> set[tuple[str, str]]:
        return {
            (one["kind"], one["metadata"]["name"])
            for one in objects(rendered(helm, *flags))
            if one["metadata"]["name"].startswith(("tutti-api", "tutti-everybody"))
        }

    lease = {("ClusterRole", "tutti-everybody"), ("ClusterRoleBinding", "tutti-everybody")}
    users = {("ClusterRole", "tutti-api-users"), ("ClusterRoleBinding", "tutti-api-users")}
    assert lease | users | {("StatefulSet", "tutti-api")} <= of_the_api()
    assert of_the_api("--set=api.enabled=false") == lease


def test_a_change_of_natss_configuration_starts_its_servers_again(helm: Path) -> None:
    def template(*flags: str) -> dict[str, str]:
        found = objects(rendered(helm, *flags))
        (one,) = (
            one["spec"]["template"]
            for one in found
            if (one["kind"], one["metadata"]["name"]) == ("StatefulSet", "tutti-nats")
        )
        return dict(one["metadata"]["annotations"])

    assert template() == template("--set=nats.resources.limits.memory=3Gi")
    assert template() != template("--set=nats.storage.fileStore=5GB")


def _planners_egress(helm: Path, *flags: str) -> list[dict[str, object]]:
    (policy,) = (
        one
        for one in objects(rendered(helm, *flags))
        if one["kind"] == "NetworkPolicy" and one["metadata"]["name"] == "tutti-gang-planner"
    )
    egress: list[dict[str, object]] = policy["spec"]["egress"]
    return egress


@pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing() or "-")
@pytest.mark.timeout(1800)
async def test_a_release_is_installed_upgraded_rolled_back_and_removed_beside_another(
    helm: Path, tmp_path: Path
) -> None:
    """Everything as rendered: arguments, tokens, Secrets, users, read-only roots, Services.

    A second release serves another scheduler name with three NATS servers, one of which is killed.
    What users made stays when both are gone.
    """
    async with installing(helm, tmp_path) as world:
        api = world.api
        gangs: dict[str, set[str]] = {}
        await create_namespace(api, "team")
        await world.helm("install", *_TUTTI)
        await eventually(
            lambda: _registered(api, "tutti-admission"), timeout_s=_PATIENCE_S, because="webhook"
        )
        await _refused(api)
        gangs["first"] = await _gang(api, "first", "tutti")
        await _job(api, "trainer")

        await _install_second(world)
        gangs["second"] = await _gang(api, "second", "second")
        await world.pods.kill("team", "second-nats-0")
        gangs["third"] = await _gang(api, "third", "second")

        await world.helm("upgrade", *_TUTTI, "--set=planner.holdSeconds=61,log.level=debug")
        assert "--hold-s=61" in await _arguments(api, "tutti-gang-planner")
        gangs["fourth"] = await _gang(api, "fourth", "tutti")
        await world.helm("rollback", "tutti", "1", *_FLAGS)
        assert "--hold-s=60" in await _arguments(api, "tutti-gang-planner")
        gangs["fifth"] = await _gang(api, "fifth", "tutti")
        _nothing_was_denied(world)

        await world.helm("uninstall", "tutti", "--namespace=kube-system", "--wait")
        await world.helm("uninstall", "second", "--namespace=team", "--wait")
        await _gone(api)
        for name, uids in gangs.items():
            assert await _running(api, name) == uids
            await api.get(f"{_GROUPS}/namespaces/team/podgroups/{name}")
        await api.get(f"{_JOBS}/namespaces/team/jobs/trainer")
        assert len((await api.get(f"{_GROUPS}/queues"))["items"]) > 0


async def _install_second(world: Installing) -> None:
    one = ("watcher", "planner", "binder", "webhook", "controllers.status")
    await world.helm(
        "install",
        "second",
        str(CHART),
        "--namespace=team",
        IMAGE,
        f"--values={CHART / 'values-ha.yaml'}",
        "--set=schedulerNames={second},controllers.jobs.enabled=false,webhook.optIn=false",
        "--set=api.enabled=false",
        f"--set={','.join(f'{name}.replicas=1' for name in one)}",
        "--wait",
        "--timeout=300s",
    )
    await eventually(
        lambda: _registered(world.api, "second-admission"), timeout_s=_PATIENCE_S, because="webhook"
    )
    assert await _registered(world.api, "tutti-admission")


async def _registered(api: RawClient, name: str) -> bool:
    return name in {one["metadata"]["name"] for one in (await api.get(_WEBHOOKS))["items"]}


async def _refused(api: RawClient) -> None:
    """The API server asks the webhook behind its Service, and it says no."""
    job = _job_manifest("impossible")
    job["spec"]["minAvailable"] = 9

    async def denied() -> bool:
        try:
            await api.request(
                "POST", f"{_JOBS}/namespaces/team/jobs", job, params={"dryRun": "All"}
            )
        except ApiError as error:
            return "admission webhook" in str(error) and "minAvailable" in str(error)
        return False

    await eventually(denied, timeout_s=_PATIENCE_S, because="the webhook refuses a Job")


async def _gang(api: RawClient, name: str, scheduler: str) -> set[str]:
    """Make a gang of three; the UIDs of its pods once they run."""
    group: Object = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": 3, "queue": "default"},
    }
    await api.create(f"{_GROUPS}/namespaces/team/podgroups", group)
    for number in range(3):
        pod = pod_manifest(
            f"{name}-{number}",
            scheduler_name=scheduler,
            requests={"cpu": "1"},
            annotations={"scheduling.k8s.io/group-name": name},
            labels={"gang": name},
        )
        await api.create("/api/v1/namespaces/team/pods", pod)

    async def whole() -> set[str]:
        found = await _running(api, name)
        return found if len(found) == 3 else set()

    return await eventually(whole, timeout_s=_PATIENCE_S, because=f"gang {name} runs")


async def _running(api: RawClient, gang: str) -> set[str]:
    pods = await api.get("/api/v1/namespaces/team/pods", labelSelector=f"gang={gang}")
    return {
        pod["metadata"]["uid"] for pod in pods["items"] if pod["status"].get("phase") == "Running"
    }


def _job_manifest(name: str) -> Object:
    container: Object = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "tutti",
            "minAvailable": 2,
            "tasks": [
                {
                    "name": "worker",
                    "replicas": 2,
                    "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
                }
            ],
        },
    }


async def _job(api: RawClient, name: str) -> None:
    """Make a Volcano Job, which our controller is to run."""
    path = f"{_JOBS}/namespaces/team/jobs"
    await api.create(path, _job_manifest(name))

    async def runs() -> bool:
        status = (await api.get(f"{path}/{name}")).get("status") or {}
        return bool(status.get("state", {}).get("phase") == "Running" and status["running"] == 2)

    await eventually(runs, timeout_s=_PATIENCE_S, because=f"Job {name} runs")


async def _arguments(api: RawClient, name: str) -> list[str]:
    """Of what the Deployment runs."""
    found = await api.get(f"/apis/apps/v1/namespaces/kube-system/deployments/{name}")
    return list(found["spec"]["template"]["spec"]["containers"][0]["args"])


def _nothing_was_denied(world: Installing) -> None:
    for path in world.pods.folder.glob("*.log"):
        text = path.read_text("utf-8", errors="replace")
        for word in ("Forbidden", "forbidden", "ermissions Violation", "Read-only file system"):
            assert word not in text, f"{path.name}: {text[text.index(word) - 300 :][:600]}"


async def _gone(api: RawClient) -> None:
    """Of both releases nothing is left that acts."""

    async def no_configuration() -> bool:
        return not (await api.get(_WEBHOOKS))["items"]

    await eventually(no_configuration, timeout_s=_PATIENCE_S, because="garbage is collected")
    roles = (await api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles"))["items"]
    names = [one["metadata"]["name"] for one in roles]
    assert not [name for name in names if name.startswith(("tutti-", "second-"))]
    definitions = await api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    kept = {one["metadata"]["name"] for one in definitions["items"]}
    assert kept == default_names()
    for namespace in ("kube-system", "team"):
        # Helm waits for what it made; pods are deleted by garbage collection and take their grace.
        await eventually(
            functools.partial(_no_pod_of_ours, api, namespace),
            timeout_s=_PATIENCE_S,
            because=f"our pods in {namespace} end",
        )


async def _no_pod_of_ours(api: RawClient, namespace: str) -> bool:
    pods = await api.get(
        f"/api/v1/namespaces/{namespace}/pods", labelSelector="app.kubernetes.io/name=tutti"
    )
    return not pods["items"]

"""Tutti on real nodes beside other products: NetworkPolicies in force, certificates by
cert-manager, traces in Jaeger, and a TFJob by Kubeflow's training-operator."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from tests.realnodes import jaeger
from tests.realnodes.charts import install, install_crds, uninstall, uninstall_crds
from tests.realnodes.cluster import RealCluster
from tests.realnodes.conftest import Measured
from tests.realnodes.connections import Outcome, Target, outcomes, start_client
from tests.realnodes.control import ToolError
from tests.realnodes.networks import FIRST_SERVICE
from tests.realnodes.products import (
    ISSUER,
    authority_of_issuer,
    delete_authority_of_issuer,
    install_cert_manager,
    start_training_operator,
)
from tests.realnodes.training import WORKERS, has_succeeded, replicas_of, tf_job
from tests.realnodes.workload import (
    GANG_LABEL,
    NAMESPACE,
    RELEASE,
    component,
    installed_kinds,
    not_ready,
    owned_objects,
    restarts,
    running_members,
    services_pods,
    submit_gang,
    submit_kubernetes_gang,
    wait_for_gang,
    wait_until,
)

pytestmark = [pytest.mark.certify, pytest.mark.timeout(1200)]

#: Namespaces of pods that are not Tutti's; only the first one is admitted by the values.
_ADMITTED: Final = "operators"
_STRANGERS: Final = "strangers"
_CLIENT: Final = "client"
_PEERS: Final = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": _ADMITTED}}}]
_BY_CERT_MANAGER: Final = {"certificate": {"source": "cert-manager", "issuerRef": ISSUER}}
_OF_TRACING: Final = [
    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": jaeger.NAMESPACE}}}
]
_POLICIES: Final = {"metricsFrom": _PEERS, "natsFrom": _PEERS, "tracesTo": _OF_TRACING}
_VALUES: Final = (
    f"--set-json=webhook={json.dumps(_BY_CERT_MANAGER)}",
    f"--set-json=api={json.dumps(_BY_CERT_MANAGER)}",
    "--set=crds.install=false",
    f"--set=tracing.otlpEndpoint={jaeger.OTLP}",
    f"--set-json=networkPolicies={json.dumps(_POLICIES)}",
)
_NATS: Final = f"{RELEASE}-nats.{NAMESPACE}.svc.cluster.local"
#: Where Helm keeps what it knows of the chart of the CRDs.
_RECORD_OF_CRDS: Final = "sh.helm.release.v1.tutti-crds.v1"
_CERTIFIED: Final = ("admission-webhook", "api")
_ENFORCED_S: Final = 20.0
_BOUND_S: Final = 30.0
_READY_S: Final = 60.0
#: Most of it is the kubelet's: it looks every minute or two whether a Secret has changed.
_OPERATOR_S: Final = 240.0
_RENEWED_S: Final = 240.0
_TRAINED_S: Final = 60.0
_TRACING_SERVICES: Final = {
    f"tutti-{name}"
    for name in ("watcher", "gang-planner", "binder", "controller", "admission-webhook")
}

Client = tuple[str, str]


@pytest.fixture(scope="module")
def release(cluster: RealCluster) -> RealCluster:
    """A release whose certificates are cert-manager's, beside the training-operator. A chart of
    their own has installed its CRDs."""
    start_training_operator(cluster)
    jaeger.start_jaeger(cluster)
    install_cert_manager(cluster)
    install_crds(cluster)
    install(cluster, *_VALUES)
    return cluster


def test_cert_manager_issues_what_the_api_server_trusts(release: RealCluster) -> None:
    wait_until(lambda: not not_ready(release), _READY_S, "all services are ready")
    certificates = release.listed("certificates.cert-manager.io", f"--namespace={NAMESPACE}")
    ready = {
        one["metadata"]["name"]
        for one in certificates
        for condition in one["status"]["conditions"]
        if (condition["type"], condition["status"]) == ("Ready", "True")
    }
    assert ready == {f"{RELEASE}-{name}" for name in _CERTIFIED}

    assert _trusted(release) == {authority_of_issuer(release)}
    _admission_and_api_answer(release)


def test_a_new_authority_replaces_the_old_one(release: RealCluster, measured: Measured) -> None:
    """As when an issuer renews its authority: certificates follow, and the API server has to trust
    the new authority as soon as they are in use."""
    before = authority_of_issuer(release)
    delete_authority_of_issuer(release)
    wait_until(lambda: authority_of_issuer(release) != before, _READY_S, "there is a new authority")
    secrets = [f"{RELEASE}-{name}-tls" for name in _CERTIFIED]
    release.kubectl("delete", "secrets", *secrets, f"--namespace={NAMESPACE}")
    after = authority_of_issuer(release)
    renewed_s = wait_until(lambda: _trusted(release) == {after}, _RENEWED_S, "it is trusted")
    measured("a new authority is trusted alone after", renewed_s)
    _admission_and_api_answer(release)
    assert restarts(release) == {}


def test_policies_allow_what_tutti_needs_and_nothing_else(
    release: RealCluster, measured: Measured
) -> None:
    for namespace in (_ADMITTED, _STRANGERS):
        release.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    pods = {component(pod): pod for pod in services_pods(release)}
    labels = pods["watcher"]["metadata"]["labels"]
    start_client(release, _ADMITTED, _CLIENT)
    start_client(release, _STRANGERS, _CLIENT)
    # Neither Tutti's labels in another namespace nor its namespace alone are enough.
    start_client(release, _STRANGERS, "impostor", labels)
    start_client(release, NAMESPACE, _CLIENT)
    expected = _expected({name: pod["status"]["podIP"] for name, pod in pods.items()})
    of_services = {("", name): pod["metadata"]["name"] for name, pod in pods.items()}

    def found_by(client: Client) -> dict[Target, Outcome]:
        name = of_services.get(client, client[1])
        return outcomes(release, client[0] or NAMESPACE, name, list(expected[client]))

    def found() -> dict[Client, dict[Target, Outcome]]:
        with ThreadPoolExecutor(len(expected)) as pool:
            return dict(zip(expected, pool.map(found_by, expected), strict=True))

    wait_until(lambda: found() == expected, _ENFORCED_S, "policies know the new pods")
    submit_gang(release, "guarded")
    bound_s = wait_for_gang(release, "guarded", _BOUND_S)
    measured("with policies in force a gang is bound after", bound_s)

    # What the policies forbid is possible without them: nothing else is in the way.
    release.enforcer.stop()
    everything_open = {
        client: dict.fromkeys(targets, "open") for client, targets in expected.items()
    }
    try:
        assert found() == everything_open
    finally:
        release.enforcer.start()
    wait_until(lambda: found() == expected, _ENFORCED_S, "policies are in force again")
    assert restarts(release) == {}
    release.kubectl("delete", "namespaces", _ADMITTED, _STRANGERS, "--wait=false")
    release.kubectl("delete", "pod", _CLIENT, f"--namespace={NAMESPACE}")


def test_a_tfjob_trains_beside_jobs_and_a_gang_of_kubernetes_own_api(
    release: RealCluster, measured: Measured
) -> None:
    def taken() -> bool:
        release.apply(tf_job("train"))
        return True

    wait_until(taken, _OPERATOR_S, "the operator's webhook answers")
    taken_s = time.monotonic()
    submit_gang(release, "one")
    submit_gang(release, "two")
    submit_kubernetes_gang(release, "own")
    wait_until(lambda: has_succeeded(release, "train"), _TRAINED_S, "the TFJob ends")
    measured("a TFJob has succeeded after", time.monotonic() - taken_s)
    replicas = replicas_of(release, "train")
    assert len(replicas) == WORKERS + 1
    # A name that Tutti serves, and no other scheduler here.
    assert {pod["spec"]["schedulerName"] for pod in replicas} == {"volcano"}
    assert {pod["status"]["phase"] for pod in replicas} == {"Succeeded"}

    def all_run() -> bool:
        jobs = [running_members(release, name) for name in ("one", "two")]
        return [*jobs, running_members(release, "own", GANG_LABEL)] == [4, 4, 4]

    wait_until(all_run, _TRAINED_S, "all other gangs run")
    release.kubectl("delete", "tfjobs", "train", "--namespace=default")


def test_jaeger_shows_the_life_of_a_jobs_gang(release: RealCluster) -> None:
    submit_gang(release, "traced")
    wait_for_gang(release, "traced", _BOUND_S)
    (gang,) = [
        one
        for one in release.listed("gangs.visibility.tutti.dev")
        if one["status"].get("owner") == "job/traced"
    ]
    trace = jaeger.whole_trace(release, gang["status"]["traceId"])
    trace.check_jobs_gang("default/traced", 4)
    assert trace.services == _TRACING_SERVICES
    release.kubectl("delete", "namespace", jaeger.NAMESPACE, "--wait=false")


def test_nothing_but_what_the_documents_name_is_left(release: RealCluster) -> None:
    assert ("Certificate", f"{RELEASE}-api") in owned_objects(release)
    uninstall(release)
    kept = {"Secret", "PersistentVolumeClaim"}
    wait_until(
        lambda: {kind for kind, _ in owned_objects(release)} <= kept,
        _READY_S,
        "what the API server's collector deletes is deleted",
    )
    selected = f"--selector=app.kubernetes.io/instance={RELEASE}"
    release.kubectl("delete", "secret,pvc", selected, f"--namespace={NAMESPACE}")
    assert owned_objects(release) == {("Secret", _RECORD_OF_CRDS)}
    kinds = installed_kinds(release)
    uninstall_crds(release)
    assert owned_objects(release) == set()
    assert "jobs.batch.volcano.sh" in kinds
    assert installed_kinds(release) == kinds


def _trusted(cluster: RealCluster) -> set[str]:
    """The authorities in Tutti's registrations. The API server trusts no others, so whatever it
    reaches has a certificate of one of them."""
    configurations = [
        one
        for kind in ("validating", "mutating")
        for one in cluster.listed(f"{kind}webhookconfigurations")
        if one["metadata"]["name"].startswith(RELEASE)
    ]
    hooks = [hook["clientConfig"] for one in configurations for hook in one["webhooks"]]
    registrations = [
        one["spec"]
        for one in cluster.listed("apiservices")
        if (one["spec"].get("service") or {}).get("name") == f"{RELEASE}-api"
    ]
    assert len(configurations) == 2
    assert len(registrations) == 1
    return {one["caBundle"] for one in (*hooks, *registrations)}


def _admission_and_api_answer(cluster: RealCluster) -> None:
    with pytest.raises(ToolError, match=r"admission webhook .* denied the request"):
        submit_gang(cluster, "impossible", minimum=5)
    assert "gangs" in cluster.kubectl("get", "--raw=/apis/visibility.tutti.dev/v1alpha1")


def _expected(address: dict[str, str]) -> dict[Client, dict[Target, Outcome]]:
    """What happens when each client connects to targets, with policies in force.

    Args:
        address: The address of a pod of each component.

    Returns:
        By client: a namespace and a pod's name, or none and a component of Tutti.
    """
    nats: Target = (_NATS, 4222)
    metrics: list[Target] = [(address[name], 8080) for name in address if name != "nats"]
    reviews: Target = (address["admission-webhook"], 8443)
    api: Target = (address["api"], 8444)
    monitor: Target = (address["nats"], 8222)
    api_server: Target = (FIRST_SERVICE, 443)
    strange: dict[Target, Outcome] = {
        **dict.fromkeys([nats, (address["nats"], 4222), monitor, *metrics], "silent"),
        # From the API server, whose address the chart does not know.
        **dict.fromkeys([reviews, api], "open"),
    }
    return {
        (_STRANGERS, _CLIENT): strange,
        (_STRANGERS, "impostor"): strange,
        (NAMESPACE, _CLIENT): strange,
        (_ADMITTED, _CLIENT): {**dict.fromkeys([nats, *metrics], "open"), monitor: "silent"},
        ("", "watcher"): {nats: "open", api_server: "open", monitor: "silent"},
        ("", "gang-planner"): {nats: "open", api_server: "silent", api: "silent"},
        ("", "nats"): {api_server: "silent", api: "silent"},
    }

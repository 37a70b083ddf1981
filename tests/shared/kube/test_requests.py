"""What a pod asks of its node: cases of kube-scheduler's own arithmetic, from pods as JSON."""

from typing import Any

import msgspec
import pytest

from shared.kube.objects import Pod
from shared.kube.quantities import QuantityError
from shared.kube.requests import effective_requests, extended_requests, host_ports, resize_of
from shared.model.objects import ContainerDevices, HostPort

GI = 2**30


def container(cpu: str = "", memory: str = "", **fields: Any) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory}
    given = {name: text for name, text in requests.items() if text}
    return {"name": "main", "resources": {"requests": given}, **fields}


def sidecar(cpu: str) -> dict[str, Any]:
    return container(cpu, restartPolicy="Always")


def requests_of(spec: dict[str, Any], status: dict[str, Any] | None = None) -> dict[str, int]:
    pod = msgspec.convert({"spec": spec, "status": status or {}}, Pod)
    return dict(effective_requests(pod.spec, resize_of(pod.status)))


CASES: list[Any] = [
    pytest.param({"containers": [container()]}, {}, id="a pod that asks for nothing is one pod"),
    pytest.param(
        {"containers": [container("100m", "1Gi"), container("1", "1Gi")]},
        {"cpu": 1100, "memory": 2 * GI},
        id="containers add up",
    ),
    pytest.param(
        {"containers": [container("1")], "initContainers": [container("3"), container("2")]},
        {"cpu": 3000},
        id="the neediest init container counts, not the sum of them",
    ),
    pytest.param(
        {"containers": [container("3")], "initContainers": [container("2", "1Gi")]},
        {"cpu": 3000, "memory": GI},
        id="the maximum is taken for each resource by itself",
    ),
    pytest.param(
        {"containers": [container("1")], "initContainers": [sidecar("2"), sidecar("500m")]},
        {"cpu": 3500},
        id="sidecars run beside the containers",
    ),
    pytest.param(
        {"containers": [container("1")], "initContainers": [sidecar("2"), container("4")]},
        {"cpu": 6000},
        id="an init container runs beside the sidecars started before it",
    ),
    pytest.param(
        {"containers": [container("1")], "initContainers": [container("4"), sidecar("2")]},
        {"cpu": 4000},
        id="an init container does not run beside later sidecars",
    ),
    pytest.param(
        {"containers": [container("1", "1Gi")], "overhead": {"cpu": "250m", "memory": "120Mi"}},
        {"cpu": 1250, "memory": GI + 120 * 2**20},
        id="overhead is added",
    ),
    pytest.param(
        {
            "containers": [
                {"resources": {"limits": {"cpu": "2", "nvidia.com/gpu": 1}, "requests": {"cpu": 1}}}
            ]
        },
        {"cpu": 1000, "nvidia.com/gpu": 1},
        id="a limit stands in for a request that is missing",
    ),
    pytest.param(
        {
            "containers": [container("1", "1Gi")],
            "initContainers": [sidecar("1")],
            "resources": {"requests": {"cpu": "5"}},
            "overhead": {"cpu": "1"},
        },
        {"cpu": 6000, "memory": GI},
        id="pod-level requests replace the sum, before overhead",
    ),
    pytest.param(
        {
            "containers": [container("1")],
            "resources": {"limits": {"cpu": "4", "memory": "2Gi", "nvidia.com/gpu": "1"}},
        },
        {"cpu": 1000, "memory": 2 * GI},
        id="a pod-level limit stands in only where no container asks, and only for what can be set",
    ),
    pytest.param(
        {"containers": [container("0", "0")]}, {}, id="asking for nothing in words is no request"
    ),
    pytest.param(
        {"containers": [container("1")], "overhead": {"pods": "7"}},
        {"cpu": 1000},
        id="a pod counts as one pod whatever it says",
    ),
]


@pytest.mark.parametrize(("spec", "expected"), CASES)
def test_requests_are_counted_as_kube_scheduler_counts_them(
    spec: dict[str, Any], expected: dict[str, int]
) -> None:
    assert requests_of(spec) == {**expected, "pods": 1}


def test_requests_are_sorted_by_name() -> None:
    spec = msgspec.convert({"containers": [container("1", "1Gi")]}, Pod.__annotations__["spec"])
    assert [name for name, _ in effective_requests(spec)] == ["cpu", "memory", "pods"]


@pytest.mark.parametrize(
    ("allocated", "in_force", "cpu"),
    [("4", "1", 4000), ("1", "3", 3000), ("1", "1", 2000), ("2", "2", 2000)],
)
def test_a_pod_in_a_resize_counts_with_the_largest_of_its_sizes(
    allocated: str, in_force: str, cpu: int
) -> None:
    status = {
        "containerStatuses": [
            {
                "name": "main",
                "allocatedResources": {"cpu": allocated},
                "resources": {"requests": {"cpu": in_force}},
            }
        ]
    }
    assert requests_of({"containers": [container("2")]}, status)["cpu"] == cpu


def resized(cpu: str, name: str = "main") -> dict[str, Any]:
    sizes = {"cpu": cpu}
    return {"name": name, "allocatedResources": sizes, "resources": {"requests": sizes}}


@pytest.mark.parametrize(("reason", "cpu"), [("Infeasible", 1000), ("Deferred", 8000)])
def test_a_resize_that_its_node_calls_infeasible_is_not_counted(reason: str, cpu: int) -> None:
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    status = {"containerStatuses": [resized("1")], "conditions": conditions}
    assert requests_of({"containers": [container("8")]}, status)["cpu"] == cpu


def test_a_sidecar_is_resized_and_an_init_container_is_not() -> None:
    spec = {
        "containers": [container("1")],
        "initContainers": [{**sidecar("1"), "name": "side"}, {**container("3"), "name": "init"}],
    }
    both = [resized("2", "side"), resized("9", "init")]
    status = {"containerStatuses": [resized("1")], "initContainerStatuses": both}
    assert requests_of(spec, status)["cpu"] == 5000


def test_a_pod_with_resources_of_its_own_is_resized_as_a_whole() -> None:
    spec = {"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}
    status = {"allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "6"}}}
    assert requests_of(spec, status)["cpu"] == 6000


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"containers": [container("x")]},
            r"spec\.containers\[main\]\.resources\.requests\.cpu: 'x' is no quantity",
        ),
        (
            {"containers": [], "initContainers": [container("-1")]},
            r"spec\.initContainers\[main\]\.resources\.requests\.cpu: '-1' is negative",
        ),
        (
            {"containers": [], "overhead": {"memory": "9Ei"}},
            r"overhead\.memory: '9Ei' is too large",
        ),
        (
            {"containers": [container("", "5Ei"), container("", "5Ei")]},
            r"requests of memory add up to \d+: a sum must fit in 63 bits",
        ),
        (
            {"containers": [], "resources": {"limits": {"cpu": ""}}},
            r"spec\.resources\.limits\.cpu: '' is no quantity",
        ),
    ],
)
def test_a_bad_quantity_is_refused_with_its_field(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(QuantityError, match=message):
        requests_of(spec)


def ports_of(spec: dict[str, Any]) -> tuple[HostPort, ...]:
    return host_ports(msgspec.convert({"spec": spec}, Pod).spec)


def test_only_ports_of_the_host_are_claimed_each_once() -> None:
    ports = [
        {"containerPort": 80},
        {"containerPort": 81, "hostPort": 8081, "protocol": "UDP", "hostIP": "10.0.0.1"},
        {"containerPort": 82, "hostPort": 8080},
        {"containerPort": 83, "hostPort": 8080},
    ]
    assert ports_of({"containers": [container(ports=ports)]}) == (
        HostPort(port=8080, protocol="TCP", ip=""),
        HostPort(port=8081, protocol="UDP", ip="10.0.0.1"),
    )


def test_on_the_host_network_every_container_port_is_claimed() -> None:
    spec = {"hostNetwork": True, "containers": [container(ports=[{"containerPort": 2222}])]}
    assert ports_of(spec) == (HostPort(port=2222),)


def test_sidecars_keep_their_ports_and_init_containers_do_not() -> None:
    init = [
        container(ports=[{"hostPort": 1, "containerPort": 1}]),
        container(ports=[{"hostPort": 2, "containerPort": 2}], restartPolicy="Always"),
    ]
    assert ports_of({"containers": [], "initContainers": init}) == (HostPort(port=2),)


def test_extended_resources_are_listed_by_container_with_their_places_among_its_requests() -> None:
    def requesting(name: str, *, limits: bool = False, **fields: Any) -> dict[str, Any]:
        amounts = {"nvidia.com/gpu": 2, "cpu": "1", "deviceclass.resource.kubernetes.io/nic": 1}
        kind = "limits" if limits else "requests"
        return {"name": name, "resources": {kind: amounts}, **fields}

    spec = {
        "initContainers": [requesting("load"), requesting("log", restartPolicy="Always")],
        "containers": [container("1"), requesting("train", limits=True)],
    }
    pod = msgspec.convert({"spec": spec}, Pod)
    requests = (("deviceclass.resource.kubernetes.io/nic", 1, 1), ("nvidia.com/gpu", 2, 2))
    assert extended_requests(pod.spec) == (
        ContainerDevices(container="load", index=0, short_lived=True, requests=requests),
        ContainerDevices(container="log", index=1, requests=requests),
        ContainerDevices(container="train", index=3, requests=requests),
    )


@pytest.mark.parametrize(
    "amounts",
    [
        pytest.param({"nvidia.com/gpu": 0}, id="nothing of it"),
        pytest.param({"nvidia.com/gpu": "many"}, id="malformed"),
        pytest.param({"hugepages-2Mi": "2Mi", "cpu": 1}, id="Kubernetes' own"),
        pytest.param({"example.kubernetes.io/x": 1}, id="a name that is reserved"),
        pytest.param({"requests.nvidia.com/gpu": 1}, id="a name of quotas"),
    ],
)
def test_nothing_else_is_an_extended_resource(amounts: dict[str, Any]) -> None:
    one = {"name": "main", "resources": {"requests": amounts}}
    assert extended_requests(msgspec.convert({"spec": {"containers": [one]}}, Pod).spec) == ()

"""The oracle's arithmetic: what a pod asks for, by Kubernetes' documented rules."""

import pytest

from tests.controlplane.client import Object
from tests.controlplane.requests import host_ports, node_allocatable, pod_requests, quantity


@pytest.mark.parametrize(
    ("resource", "text", "expected"),
    [
        ("cpu", "1", 1000),
        ("cpu", "250m", 250),
        ("cpu", "0.1", 100),
        ("cpu", "1u", 1),
        ("memory", "1Gi", 2**30),
        ("memory", "1.5Mi", 3 * 2**19),
        ("memory", "1e3", 1000),
        ("memory", "5E", 5 * 10**18),
        ("memory", "12E2", 1200),
        ("memory", "100m", 1),
        ("nvidia.com/gpu", "8", 8),
    ],
)
def test_a_quantity_is_read_in_the_resources_unit_and_rounded_up(
    resource: str, text: str, expected: int
) -> None:
    assert quantity(resource, text) == expected


@pytest.mark.parametrize("text", ["", "lots", "1KiB", "--1", "1.2.3"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (whose words depend on what is wrong)
        quantity("cpu", text)


def container(cpu: str, **other: object) -> Object:
    return {"name": cpu, "resources": {"requests": {"cpu": cpu}}, **other}


def cpu_of(spec: Object) -> int:
    return pod_requests({"spec": spec})["cpu"]


def test_the_largest_init_container_counts_if_it_is_larger_than_all_containers() -> None:
    containers = [container("1"), container("2")]

    assert cpu_of({"containers": containers, "initContainers": [container("5")]}) == 5000
    assert cpu_of({"containers": containers, "initContainers": [container("2")] * 2}) == 3000


def test_a_sidecar_counts_beside_the_containers_and_the_init_containers_after_it() -> None:
    sidecar = container("1", restartPolicy="Always")

    assert cpu_of({"containers": [container("2")], "initContainers": [sidecar]}) == 3000
    after = {"containers": [container("2")], "initContainers": [sidecar, container("4")]}
    assert cpu_of(after) == 5000
    before = {"containers": [container("2")], "initContainers": [container("4"), sidecar]}
    assert cpu_of(before) == 4000


def test_overhead_and_the_pod_itself_are_added() -> None:
    spec: Object = {"containers": [container("1")], "overhead": {"cpu": "100m", "memory": "8Mi"}}

    assert pod_requests({"spec": spec}) == {"cpu": 1100, "memory": 2**23, "pods": 1}


def test_requests_of_the_pod_replace_those_of_its_containers() -> None:
    spec: Object = {
        "containers": [container("1")],
        "resources": {"requests": {"cpu": "3"}},
    }

    assert cpu_of(spec) == 3000


def test_host_ports_and_allocatable_are_read_from_the_objects() -> None:
    ports = [{"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "protocol": "UDP"}]
    udp = [{"containerPort": 3, "hostPort": 53, "protocol": "UDP"}]
    containers: list[Object] = [{"ports": ports}, {"ports": udp}, {}]

    assert host_ports({"spec": {"containers": containers}}) == {("TCP", 80), ("UDP", 53)}
    assert node_allocatable({"status": {"allocatable": {"cpu": "4", "pods": "110"}}}) == {
        "cpu": 4000,
        "pods": 110,
    }


def test_extended_resources_that_devices_serve_do_not_count() -> None:
    gpu = "example.com/gpu"
    resources = {"requests": {"cpu": "1", gpu: "2"}}
    containers = [{"name": name, "resources": resources} for name in ("a", "b")]
    mapping = {"containerName": "a", "resourceName": gpu, "requestName": "r"}
    status = {"extendedResourceClaimStatus": {"requestMappings": [mapping]}}
    pod = {"spec": {"containers": containers}, "status": status}
    assert pod_requests(pod) == {"cpu": 2000, gpu: 2, "pods": 1}

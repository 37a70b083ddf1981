"""Volumes, claims, classes and what CSI drivers say, read."""

from typing import Any

import pytest

from shared.kube.resources import (
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from shared.model import reference_objects
from shared.model.objects import Requirement, SelectorTerm
from shared.model.terms import Selector
from tests.shared.dialects.test_reference_objects import WEB, read

ZONE_A = Requirement(key="zone", operator="In", values=("a",))
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def test_a_volume_is_read_whole() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    found = read(
        VOLUMES,
        {
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "volumeMode": "Block",
                "claimRef": {"namespace": "team", "name": "data", "uid": "uid-c"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                "csi": {"driver": "csi.example", "volumeHandle": "v-1"},
            },
            "status": {"phase": "Bound"},
        },
        labels={"topology.kubernetes.io/zone": "a"},
    )
    assert found == reference_objects.Volume(
        uid="uid-one",
        name="one",
        resource_version=7,
        capacity_bytes=10 << 30,
        access_modes=("ReadWriteOnce",),
        storage_class="fast",
        mode="Block",
        phase="Bound",
        labels=(("topology.kubernetes.io/zone", "a"),),
        claim_namespace="team",
        claim_name="data",
        claim_uid="uid-c",
        node_affinity=(SelectorTerm(expressions=(ZONE_A,)),),
        driver="csi.example",
        handle="v-1",
    )


def test_a_local_volume_without_affinity_is_usable_everywhere_and_has_no_driver() -> None:
    found = read(VOLUMES, {"spec": {"hostPath": {"path": "/data"}}})
    assert (found.node_affinity, found.driver, found.mode) == (None, "", "Filesystem")


@pytest.mark.parametrize(
    ("source", "driver", "handle"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "ebs.csi.aws.com", "vol-1"),
        ({"gcePersistentDisk": {"pdName": "pd-1"}}, "pd.csi.storage.gke.io", "pd-1"),
        ({"azureDisk": {"diskURI": "/d/1"}}, "disk.csi.azure.com", "/d/1"),
        ({"cinder": {"volumeID": "c-1"}}, "cinder.csi.openstack.org", "c-1"),
        ({"vsphereVolume": {"volumePath": "[ds] v"}}, "csi.vsphere.vmware.com", "[ds] v"),
        ({"portworxVolume": {"volumeID": "p-1"}}, "pxd.portworx.com", "p-1"),
    ],
)
def test_a_volume_of_an_in_tree_kind_belongs_to_its_csi_driver(
    source: dict[str, Any], driver: str, handle: str
) -> None:
    found = read(VOLUMES, {"spec": source})
    assert (found.driver, found.handle) == (driver, handle)


def test_a_claim_is_read_whole() -> None:
    found = read(
        VOLUME_CLAIMS,
        {
            "spec": {
                "accessModes": ["ReadWriteOncePod"],
                "selector": {"matchLabels": {"app": "web"}},
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": "pv-1",
                "storageClassName": "fast",
                "volumeMode": "Block",
            },
            "status": {"phase": "Bound"},
        },
        annotations={
            "volume.kubernetes.io/selected-node": "n1",
            "pv.kubernetes.io/bind-completed": "yes",
        },
        ownerReferences=[{"kind": "Pod", "uid": "uid-pod", "controller": True}],
        deletionTimestamp="2026-03-01T11:00:00Z",
    )
    assert found == reference_objects.Claim(
        uid="uid-one",
        namespace="team",
        name="one",
        resource_version=7,
        storage_class="fast",
        volume_name="pv-1",
        access_modes=("ReadWriteOncePod",),
        request_bytes=1 << 30,
        mode="Block",
        selector=WEB,
        selected_node="n1",
        bind_completed=True,
        phase="Bound",
        owner_uid="uid-pod",
        deleting=True,
    )


@pytest.mark.parametrize(
    ("spec", "annotations", "expected"),
    [
        ({}, {}, None),
        ({"storageClassName": ""}, {}, ""),
        ({"storageClassName": "a"}, {CLASS_ANNOTATION: "b"}, "b"),
    ],
)
def test_the_class_of_a_claim_may_be_absent_or_empty_or_an_old_annotation(
    spec: dict[str, Any], annotations: dict[str, str], expected: str | None
) -> None:
    assert read(VOLUME_CLAIMS, {"spec": spec}, annotations=annotations).storage_class == expected


def test_a_claim_that_a_set_controls_is_no_ephemeral_one() -> None:
    owners = [{"kind": "StatefulSet", "uid": "uid-set", "controller": True}]
    assert read(VOLUME_CLAIMS, {}, ownerReferences=owners).owner_uid == ""


def test_a_storage_class_is_read_whole() -> None:
    found = read(
        STORAGE_CLASSES,
        {
            "provisioner": "kubernetes.io/aws-ebs",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
        },
        annotations={"storageclass.kubernetes.io/is-default-class": "true"},
    )
    assert found == reference_objects.StorageClass(
        uid="uid-one",
        name="one",
        resource_version=7,
        provisioner="ebs.csi.aws.com",
        wait_for_first_consumer=True,
        allowed_topologies=(SelectorTerm(expressions=(ZONE_A,)),),
        default=True,
    )


def test_limits_of_a_node_are_read_by_driver() -> None:
    drivers = [
        {"name": "b", "allocatable": {"count": 0}, "topologyKeys": ["zone"]},
        {"name": "a"},
    ]
    assert read(CSI_NODES, {"spec": {"drivers": drivers}}).drivers == (
        reference_objects.CsiLimit(driver="a"),
        reference_objects.CsiLimit(driver="b", volumes_max=0, topology_keys=("zone",)),
    )


def test_a_driver_says_whether_it_publishes_capacity() -> None:
    assert read(CSI_DRIVERS, {"spec": {"storageCapacity": True}}).storage_capacity
    assert not read(CSI_DRIVERS, {"spec": {}}).storage_capacity


def test_a_capacity_is_read_whole() -> None:
    found = read(
        CSI_CAPACITIES,
        {
            "storageClassName": "fast",
            "nodeTopology": {"matchLabels": {"app": "web"}},
            "capacity": "5Gi",
            "maximumVolumeSize": "1Gi",
        },
    )
    assert (found.storage_class, found.node_topology) == ("fast", WEB)
    assert (found.capacity_bytes, found.volume_bytes_max) == (5 << 30, 1 << 30)


def test_a_capacity_without_amounts_is_none_and_without_bound() -> None:
    found = read(CSI_CAPACITIES, {"storageClassName": "fast", "nodeTopology": {}})
    assert (found.capacity_bytes, found.volume_bytes_max) == (0, -1)
    assert found.node_topology == Selector()

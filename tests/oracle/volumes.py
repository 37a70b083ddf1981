"""Strategies for storage: claims that are bound, that wait for their first consumer, that can be
provisioned or not, limits per node, volumes that are still attached, ReadWriteOncePod,
disks without a claim.
"""

from typing import Any, Final

from hypothesis import strategies as st

from tests.oracle import clusters
from tests.oracle.scheduler import Cluster

Json = dict[str, Any]
DRIVER: Final = "csi.example.com"
_SIZES: Final = ("1Gi", "5Gi", "10Gi")
_CLASSES: Final = ("waits", "zonal", "static", "now")


def _meta(name: str, **fields: Any) -> Json:
    return {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", **fields}


def storage_classes() -> list[Json]:
    """Three that wait (provisioned everywhere, in zone a, not at all), one that does not."""
    waiting = {"volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete"}
    zone = [{"matchLabelExpressions": [{"key": clusters.ZONE, "values": ["a"]}]}]
    return [
        {"metadata": _meta("waits"), "provisioner": DRIVER, **waiting},
        {"metadata": _meta("zonal"), "provisioner": DRIVER, "allowedTopologies": zone, **waiting},
        {
            "metadata": _meta("static"),
            "provisioner": "kubernetes.io/no-provisioner",
            **waiting,
        },
        {"metadata": _meta("now"), "provisioner": DRIVER, "volumeBindingMode": "Immediate"},
    ]


@st.composite
def _volume(draw: st.DrawFn, name: str, claim: str, nodes: list[str]) -> Json:
    """A PersistentVolume, bound to a claim or free."""
    spec: Json = {
        "capacity": {"storage": draw(st.sampled_from(_SIZES))},
        "accessModes": draw(
            st.sampled_from((["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"]))
        ),
        "storageClassName": draw(st.sampled_from(_CLASSES)),
        "volumeMode": draw(st.sampled_from(("Filesystem", "Filesystem", "Block"))),
        "persistentVolumeReclaimPolicy": "Delete",
        "csi": {"driver": DRIVER, "volumeHandle": name},
    }
    key, value = draw(
        st.sampled_from(
            ((clusters.HOSTNAME, nodes[0]), (clusters.ZONE, "a"), (clusters.ZONE, "b"), ("", ""))
        )
    )
    if key:
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    labels: Json = {}
    if draw(st.integers(0, 4)) == 0:
        labels[clusters.ZONE] = draw(st.sampled_from(("a", "b")))
    if claim:
        spec["claimRef"] = {"namespace": "team", "name": claim, "uid": f"uid-{claim}"}
    phase = "Bound" if claim else "Available"
    return {
        "metadata": _meta(name, labels=labels),
        "spec": spec,
        "status": {"phase": phase},
    }


@st.composite
def _attachments(draw: st.DrawFn, nodes: list[str], volumes: list[str]) -> list[Json]:
    """What drivers say is attached: any volume, on any node."""
    attached = draw(
        st.lists(
            st.tuples(
                st.sampled_from(nodes),
                st.sampled_from([*volumes, "no-such"]),
                st.sampled_from((DRIVER, DRIVER, DRIVER, "other.example.com")),
            ),
            max_size=3,
            unique=True,
        )
    )
    return [
        {
            "metadata": _meta(f"attached-{index}"),
            "spec": {
                "attacher": driver,
                "nodeName": node,
                "source": {"persistentVolumeName": volume},
            },
            "status": {"attached": True},
        }
        for index, (node, volume, driver) in enumerate(attached)
    ]


@st.composite
def storage(draw: st.DrawFn, nodes: list[str]) -> Cluster:
    """Claims c0, c1, c2, each bound or not, with volumes for some of them and free ones."""
    claims: list[Json] = []
    volumes: list[Json] = []
    for index in range(3):
        name = f"c{index}"
        spec: Json = {
            "accessModes": [
                draw(st.sampled_from(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod")))
            ],
            "resources": {"requests": {"storage": draw(st.sampled_from(_SIZES))}},
            "storageClassName": draw(st.sampled_from((*_CLASSES, "no-such"))),
            "volumeMode": "Filesystem",
        }
        metadata = _meta(name, namespace="team")
        bound = draw(st.booleans())
        if bound:
            volume = draw(_volume(f"bound-{index}", name, nodes))
            volumes.append(volume)
            spec["volumeName"] = volume["metadata"]["name"]
            spec["storageClassName"] = volume["spec"]["storageClassName"]
            metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        claims.append(
            {
                "metadata": metadata,
                "spec": spec,
                "status": {"phase": "Bound" if bound else "Pending"},
            }
        )
    free = range(draw(st.integers(0, 2)))
    volumes += [draw(_volume(f"free-{index}", "", nodes)) for index in free]
    limits = [draw(st.sampled_from((None, None, 1, 2))) for _ in nodes]
    return {
        "volumeAttachments": draw(
            _attachments(nodes, [one["metadata"]["name"] for one in volumes])
        ),
        "persistentVolumeClaims": claims,
        "persistentVolumes": volumes,
        "storageClasses": storage_classes(),
        "csiNodes": [
            {
                "metadata": _meta(node),
                "spec": {
                    "drivers": [
                        {
                            "name": DRIVER,
                            "nodeID": node,
                            "topologyKeys": [],
                            **({"allocatable": {"count": limit}} if limit is not None else {}),
                        }
                    ]
                },
            }
            for node, limit in zip(nodes, limits, strict=True)
        ],
        "csiDrivers": [{"metadata": _meta(DRIVER), "spec": {"storageCapacity": False}}],
    }


@st.composite
def pod(draw: st.DrawFn, name: str, claims: tuple[str, ...]) -> Json:
    """A small pod with one or two of these claims."""
    found = draw(clusters.pod(name))
    for container in (*found["spec"]["containers"], *found["spec"]["initContainers"]):
        container["resources"] = {"requests": {"cpu": "10m"}}
        container.pop("ports", None)
    chosen = draw(st.lists(st.sampled_from(claims), min_size=1, max_size=2, unique=True))
    found["spec"]["volumes"] = [
        {"name": f"v{index}", "persistentVolumeClaim": {"claimName": claim}}
        for index, claim in enumerate(chosen)
    ]
    disks = draw(st.one_of(st.just([]), st.lists(_disk(), max_size=2)))
    found["spec"]["volumes"] += [
        {"name": f"disk{index}", **disk} for index, disk in enumerate(disks)
    ]
    return found


@st.composite
def _disk(draw: st.DrawFn) -> Json:
    """A volume without a claim that two pods on a node may not share."""
    name, reads = draw(st.sampled_from(("a", "b"))), draw(st.booleans())
    monitors = draw(st.sampled_from((["m0"], ["m1"], ["m0", "m1"])))
    return draw(
        st.sampled_from(
            (
                {"gcePersistentDisk": {"pdName": name, "readOnly": reads}},
                {"awsElasticBlockStore": {"volumeID": name, "readOnly": reads}},
                {"iscsi": {"targetPortal": "p", "iqn": name, "lun": 0, "readOnly": reads}},
                {"rbd": {"monitors": monitors, "pool": "rbd", "image": name, "readOnly": reads}},
            )
        )
    )


@st.composite
def cluster(draw: st.DrawFn) -> Cluster:
    """Nodes that take 110 pods, storage, and pods that use bound claims."""
    drawn = draw(clusters.roomy_clusters())
    names = [one["metadata"]["name"] for one in drawn["nodes"]]
    found = draw(storage(names))
    bound = tuple(
        one["metadata"]["name"]
        for one in found["persistentVolumeClaims"]
        if one["spec"].get("volumeName")
    )
    pods = [
        clusters.on(draw(st.sampled_from(names)), draw(pod(f"other-{index}", bound)))
        for index in range(draw(st.integers(0, 3)) if bound else 0)
    ]
    return {**found, "nodes": drawn["nodes"], "pods": pods, "namespaces": []}

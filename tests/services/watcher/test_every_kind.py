"""One object of every kind that is only looked up, from a real API server into CLUSTER.

What a real API server takes and gives is the only proof that a reader looks at the right fields.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from shared.dialects.discovery import kinds
from shared.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, TOPOLOGIES_KAI, Resource
from shared.model import devices, reference_objects
from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.services.watcher.running import Reader, WatcherProcess
from tests.support.provisioning import installed_kind
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_CRDS: Final = Path(__file__).parents[2] / "dialects" / "crds"
TOPOLOGIES: Final = _CRDS / "kai.scheduler_topologies.yaml"
NAME: Final = "every-kind"
CSI: Final = "csi.example.com"
GPU: Final = "gpu.example.com"
ON_NODE: Final = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    ]
}
#: What is made of each neutral kind.
MADE: Final[dict[str, Object]] = {
    "resourcequota": {"spec": {"hard": {"requests.cpu": "3", "count/pods": "9"}}},
    "budget": {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}},
    "volume": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": CSI, "volumeHandle": "v-1"},
            "nodeAffinity": {"required": ON_NODE},
            "storageClassName": NAME,
        }
    },
    "claim": {
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": NAME,
        }
    },
    "storageclass": {"provisioner": CSI, "volumeBindingMode": "WaitForFirstConsumer"},
    "csinode": {"spec": {"drivers": [{"name": CSI, "nodeID": "n", "allocatable": {"count": 5}}]}},
    "csidriver": {"spec": {"storageCapacity": True}},
    "storagecapacity": {
        "storageClassName": NAME,
        "nodeTopology": {"matchLabels": {"a": "b"}},
        "capacity": "2Gi",
    },
    "volumeattachment": {
        "spec": {
            "attacher": CSI,
            "nodeName": "n",
            "source": {"persistentVolumeName": NAME},
        }
    },
    "hypernode": {
        "spec": {
            "tier": 1,
            "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}],
        }
    },
    "topology": {"spec": {"levels": [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]}},
    "deviceclass": {"spec": {"selectors": [{"cel": {"expression": f'device.driver == "{GPU}"'}}]}},
    "resourceslice": {
        "spec": {
            "driver": GPU,
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n",
            "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
        }
    },
    "devicetaintrule": {
        "spec": {
            "deviceSelector": {"driver": GPU, "device": "gpu-0"},
            "taint": {"key": "broken", "value": "yes", "effect": "NoExecute"},
        }
    },
    "resourceclaim": {
        "spec": {
            "devices": {
                "requests": [{"name": "g", "exactly": {"deviceClassName": NAME, "count": 2}}]
            }
        }
    },
    "workload": {
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "none"}],
                }
            }
        }
    },
    "provisioningrequest": {
        "spec": {
            "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
            "podSets": [{"podTemplateRef": {"name": "workers"}, "count": 2}],
        }
    },
}
#: Neutral kind -> fields that it must come out with.
EXPECTED: Final[dict[str, dict[str, Any]]] = {
    "resourcequota": {"hard": (("count/pods", 9), ("requests.cpu", 3000))},
    "volume": {"capacity_bytes": 1 << 30, "driver": CSI, "handle": "v-1", "storage_class": NAME},
    "claim": {
        "request_bytes": 1 << 30,
        "access_modes": ("ReadWriteOncePod",),
        "storage_class": NAME,
        "mode": "Filesystem",
        "bind_completed": False,
    },
    "storageclass": {"provisioner": CSI, "wait_for_first_consumer": True},
    "csinode": {"drivers": (reference_objects.CsiLimit(driver=CSI, volumes_max=5),)},
    "csidriver": {"storage_capacity": True},
    "storagecapacity": {"storage_class": NAME, "capacity_bytes": 2 << 30, "volume_bytes_max": -1},
    "volumeattachment": {"node": "n", "driver": CSI, "volume": NAME},
    "hypernode": {
        "tier": 1,
        "members": (reference_objects.HyperNodeMember(kind="Node", exact="n"),),
    },
    "topology": {"levels": ("zone", "rack")},
    "deviceclass": {"driver": GPU},
    "resourceslice": {"driver": GPU, "pool": "n", "node": "n", "devices": ("gpu-0", "gpu-1")},
    "devicetaintrule": {
        "driver": GPU,
        "pool": None,
        "device": "gpu-0",
        "taint": devices.DeviceTaint(key="broken", value="yes", effect="NoExecute"),
    },
    "resourceclaim": {
        "requests": (devices.DeviceRequest(name="g", device_class=NAME, count=2),),
        "unsupported": (),
    },
    "workload": {"owner_uid": "", "parts": None},
    "provisioningrequest": {"gang_id": "uid", "digest": "0123456789ab", "attempt": 3, "state": ""},
}
#: Names that are no name of ours but of what they describe.
NAMES: Final = {"csidriver": CSI, "provisioningrequest": "tutti-uid-0123456789ab-3"}
#: What they are called in CLUSTER, where that is not their name.
CALLED: Final = {"workload": f"jobs.batch/{NAME}"}


def _resource_of(neutral: str) -> Resource:
    """The resource that is created for a neutral kind: of workloads, a Job."""
    found = [kind.resource for kind in kinds() if kind.neutral == neutral]
    return next((one for one in found if one.plural == "jobs"), found[0])


@pytest.fixture
async def kind_of_kai(api: RawClient, control_plane: ControlPlane) -> AsyncIterator[None]:
    """The kind that is none of ours and not the API server's; gone afterwards."""
    await asyncio.to_thread(control_plane.install_crds, TOPOLOGIES)
    yield
    name = f"{TOPOLOGIES_KAI.plural}.{TOPOLOGIES_KAI.group}"
    await api.delete(CUSTOM_RESOURCE_DEFINITIONS.path(name=name))


@pytest.fixture
async def kind_of_autoscalers(api: RawClient) -> AsyncIterator[None]:
    """Likewise."""
    async with installed_kind(api):
        yield


@pytest.fixture
async def made(
    kind_of_kai: None,
    kind_of_autoscalers: None,
    watcher: WatcherProcess,
    api: RawClient,
    namespace: str,
) -> AsyncIterator[None]:
    """One object of each; gone afterwards."""
    del kind_of_kai, kind_of_autoscalers, watcher
    paths = []
    for neutral, body in MADE.items():
        resource = _resource_of(neutral)
        name = NAMES.get(neutral, NAME)
        where = namespace if resource.namespaced else ""
        about = {"apiVersion": resource.api_version, "kind": resource.kind}
        await api.create(resource.path(where), {**about, "metadata": {"name": name}, **body})
        paths.append(resource.path(where, name))
    yield
    for path in paths:
        await api.delete(path)


def test_every_kind_that_is_looked_up_is_made_here() -> None:
    # Namespaces are there anyhow.
    looked_up = {kind.neutral for kind in kinds() if kind.lookup} - {"namespace"}
    assert looked_up == set(MADE)
    assert set(EXPECTED) <= set(MADE)


@pytest.mark.usefixtures("made")
async def test_what_a_real_api_server_keeps_comes_out_as_the_planner_needs_it(
    reader: Reader, namespace: str
) -> None:
    async def one(kind: str, name: str) -> Any:
        found = await eventually(lambda: reader.sent(kind, name), because=f"{kind} is in CLUSTER")
        return found[0]

    names = {kind: CALLED.get(kind, NAMES.get(kind, NAME)) for kind in MADE}
    # One by one: the reader keeps its place in the log for all callers.
    read = [await one(kind, name) for kind, name in names.items()]
    assert (await one("namespace", namespace)).labels
    for kind, found in zip(names, read, strict=True):
        for field, value in EXPECTED.get(kind, {}).items():
            assert getattr(found, field) == value, (kind, field)
    assert read[list(names).index("budget")].selector is not None

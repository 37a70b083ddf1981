"""Events of controllers on a real API server: one that is refused costs an operator no attention
where its object is going away.
"""

import asyncio
import logging
import uuid

import pytest

from services.controller.core.events import ControllerEvent
from services.controller.reconciling.events import Recorder
from services.controller.reconciling.writes import Writes
from shared.kinds.metadata import Metadata
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.resources import CONFIGMAPS, NAMESPACES
from tests.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("namespace", "level"), [("exists", logging.DEBUG), ("no-such-namespace", logging.WARNING)]
)
async def test_an_event_in_a_namespace_that_is_being_deleted_is_dropped_without_a_warning(
    control_plane: ControlPlane, caplog: pytest.LogCaptureFixture, namespace: str, level: int
) -> None:
    caplog.set_level(logging.DEBUG, "services.controller")
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:
        if namespace == "exists":
            # Without a controller that empties and finalizes it, it is being deleted for ever.
            namespace = f"test-{uuid.uuid4().hex[:10]}"
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await client.create(NAMESPACES, manifest)
            await client.delete(NAMESPACES, namespace)
        recorder = Recorder(Writes(client, per_s=1000))
        task = asyncio.create_task(recorder.run(), name="recorder")
        about = Metadata(namespace=namespace, name="a", uid="u-1")
        recorder.record(CONFIGMAPS, about, ControllerEvent("Normal", "Said", "words"))
        await recorder.flush()
        task.cancel()
        await asyncio.wait([task])
    assert recorder.dropped == 1
    assert [record.levelno for record in caplog.records if "is dropped" in record.message] == [
        level
    ]

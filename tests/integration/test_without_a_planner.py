"""`tutti why` after all services have ended, on a real API server."""

from pathlib import Path

import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import create_pods, pod_manifest
from tests.integration.stage import VOLCANO
from tests.integration.suite import running_suite
from tests.support.waiting import eventually
from tests.tutti.up.running import tutti

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

#: Exit status of `tutti why` when no planner reports.
NO_PLANNER = 3
#: A planner counts as silent 10 s after it has renewed its Lease last.
SILENT_S = 30.0


async def test_the_answer_says_first_that_it_may_be_out_of_date(
    control_plane: ControlPlane, api: RawClient, namespace: str, tmp_path: Path
) -> None:
    flags = (f"--namespace={namespace}", f"--kubeconfig={control_plane.admin_kubeconfig}")

    async def answered(status: int, *words: str) -> str:
        found, text, errors = await tutti("why", "podgroup/train", *flags)
        assert found == status, text + errors
        assert all(word in text for word in words), text
        return text

    group = {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"minMember": 2},
    }
    pod = pod_manifest(
        "train-0",
        scheduler_name="tutti",
        annotations={"scheduling.k8s.io/group-name": "train"},
    )
    with running_suite(control_plane.admin_kubeconfig, tmp_path, "--no-webhook"):
        await api.create(f"/apis/{VOLCANO}/namespaces/{namespace}/podgroups", group)
        await create_pods(api, namespace, [pod])
        await eventually(
            lambda: answered(0, "1 of 2"), timeout_s=SILENT_S, because="the planner explains it"
        )
    text = await eventually(
        lambda: answered(NO_PLANNER, "1 of 2"),
        timeout_s=SILENT_S,
        because="no planner reports any more",
    )
    assert text.startswith("No planner is active"), text

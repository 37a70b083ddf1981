"""`vcctl pod list`, as `tutti` has it, at an embedded API server."""

import pytest

from tests.api_suite.client import Client, Obj
from tests.tutti.conftest import Typed

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, labels: Obj, annotations: Obj) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


@pytest.mark.integration
async def test_pods_of_jobs_are_listed_and_those_of_other_workloads_with_their_queue(
    typed: Typed, cluster_api: Client
) -> None:
    of_a = {"volcano.sh/job-name": "a", "volcano.sh/queue-name": "q1"}
    of_b = {"volcano.sh/job-name": "b", "volcano.sh/queue-name": "q2"}
    await cluster_api.create(PODS, pod("a-0", of_a, {}))
    await cluster_api.create(PODS, pod("b-0", of_b, {}))
    await cluster_api.create(PODS, pod("web", {}, {"scheduling.volcano.sh/queue-name": "q1"}))
    await cluster_api.create(PODS, pod("alone", {}, {}))
    for flags, names in [
        ([], ["a-0", "b-0"]),
        (["-j", "a"], ["a-0"]),
        (["-q", "q1"], ["a-0", "web"]),
        (["-j", "b", "-q", "q1"], []),
    ]:
        done = await typed("pod", "list", "-o", "name", *flags)
        assert [line for line in done.output.splitlines() if line.startswith("pod/")] == [
            f"pod/{name}" for name in names
        ], flags
    head, row, _ = (await typed("pod", "list")).output.splitlines()
    assert head.split() == ["Name", "Ready", "Status", "Restart", "Age"]
    assert row.startswith("a-0        0/1        Pending        0        ")

"""Queues that `tutti migrate queues` made, created on a real API server beside the webhook."""

from typing import Any, Final

import pytest
import yaml

from tests.controlplane.client import ApiError
from tests.integration.stage import VOLCANO, Stage
from tests.support.waiting import eventually
from tutti.convert.command import converted

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

SUITE_FLAGS: Final = ()
QUEUES: Final = f"/apis/{VOLCANO}/queues"

KUEUE: Final = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-a}
spec:
  cohortName: org
  queueingStrategy: StrictFIFO
  resourceGroups:
  - flavors:
    - name: default
      resources: [{name: cpu, nominalQuota: 3, borrowingLimit: 0, lendingLimit: 1}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-b}
spec:
  cohortName: org
  resourceGroups:
  - flavors: [{name: default, resources: [{name: cpu, nominalQuota: 1}]}]
"""
KAI: Final = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: dept}
spec: {resources: {gpu: {quota: 4, limit: -1, overQuotaWeight: 1}}}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: research}
spec:
  parentQueue: dept
  preemptMinRuntime: 5m
  resources: {gpu: {quota: 6, limit: 8, overQuotaWeight: 2}, memory: {quota: 1000, limit: 2000}}
"""
YUNIKORN: Final = """
partitions:
- name: default
  queues:
  - name: root
    queues:
    - name: Ads_team
      resources: {guaranteed: {vcore: 10}, max: {vcore: 20}}
      queues: [{name: x, resources: {max: {vcore: 30}}}]
"""


async def test_the_webhook_accepts_converted_queues_and_a_gang_runs_in_one(stage: Stage) -> None:
    documents = [one for text in (KUEUE, KAI, YUNIKORN) for one in yaml.safe_load_all(text)]
    queues: list[dict[str, Any]] = [
        one.manifest() for one in converted(documents, "nvidia.com/gpu").queues
    ]
    try:
        for queue in queues:
            made = await _create(stage, queue)
            assert made["spec"] | queue["spec"] == made["spec"], "stored as it was converted"
        await stage.nodes(2)
        await stage.group("fits", 2, spec={"queue": "team-a"})
        await stage.members("fits", 2)
        await stage.bound("fits", 2)
        await stage.group("larger", 4, spec={"queue": "team-a"})
        await stage.members("larger", 4)
        await stage.stays_unbound("larger")
    finally:
        for queue in reversed(queues):
            await _delete(stage, queue["metadata"]["name"])


async def _create(stage: Stage, queue: dict[str, Any]) -> dict[str, Any]:
    """Create a queue once the webhook has seen its parent, which was created before."""

    async def is_created() -> dict[str, Any]:
        try:
            return await stage.api.create(QUEUES, queue)
        except ApiError as error:
            raise AssertionError(str(error)) from None

    return await eventually(is_created, because="the webhook accepts it")


async def _delete(stage: Stage, name: str) -> None:
    """Delete a queue whose children are gone, once the webhook knows that they are."""

    async def is_deleted() -> bool:
        try:
            await stage.delete(f"{QUEUES}/{name}")
        except ApiError as error:
            raise AssertionError(str(error)) from None
        return True

    await eventually(is_deleted, timeout_s=10, because=f"{name} has no children")

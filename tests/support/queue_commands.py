"""Waits until Commands on queues are carried out, on a real API server."""

from datetime import UTC, datetime

from services.controller.queue_command_policy import SETTLE_MS
from shared.kube.resources import ADMISSION_POLICIES
from tests.controlplane.client import RawClient
from tests.support.waiting import eventually


async def commands_are_reviewed(api: RawClient) -> None:
    """Commands that are created in the first seconds of the policy are refused."""

    async def settled() -> bool:
        policy = await api.get(f"{ADMISSION_POLICIES.path('')}/tutti-queue-commands")
        created = datetime.fromisoformat(policy["metadata"]["creationTimestamp"])
        assert (datetime.now(UTC) - created).total_seconds() * 1000 > SETTLE_MS + 2_000
        return True

    await eventually(settled, timeout_s=30, because="the policy is old enough")

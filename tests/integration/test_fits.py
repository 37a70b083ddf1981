"""`tutti fits` asks the API of a whole suite, which asks its planner."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.client import Object
from tests.integration.stage import SEEN_S, Stage
from tests.support.queue_commands import commands_are_reviewed
from tests.support.waiting import eventually
from tests.tutti.up.running import tutti

SUITE_FLAGS = ("--api",)
_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


def job(*, scheduler_name: str = "volcano", cpu: str = "1", **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    task = {"name": "w", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    fields = {"schedulerName": scheduler_name, "minAvailable": 2, "tasks": [task], **spec}
    kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    return {**kind, "metadata": {"name": "train"}, "spec": fields}


async def fits(stage: Stage, folder: Path, manifest: Object) -> tuple[int, str]:
    """Status, and all that was said."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(manifest))
    where = f"--namespace={stage.namespace}"

    async def answered() -> tuple[int, str]:
        status, said, errors = await tutti("fits", "-f", str(path), where, _kubeconfig(stage))
        assert "does not serve" not in errors
        return status, said + errors

    return await eventually(answered, timeout_s=SEEN_S, because="the API server asks the service")


def _kubeconfig(stage: Stage) -> str:
    return f"--kubeconfig={stage.suite.kubeconfig}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"minAvailable": 3}, "spec.minAvailable"),
        ({"queue": "nowhere"}, "nowhere"),
        ({"minAvailableX": 2}, 'unknown field "spec.minAvailableX"'),
        ({"scheduler_name": "volcanoo"}, "schedulerName volcanoo is not served"),
    ],
    ids=["above its replicas", "no such queue", "misspelt", "without an owner"],
)
async def test_what_admission_would_refuse_does_not_fit_and_the_field_is_named(
    stage: Stage, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    await stage.nodes(2)
    status, said = await fits(stage, tmp_path, job(**changes))
    assert status == 2, said
    assert words in said


async def test_a_job_in_a_closed_queue_does_not_fit(stage: Stage, tmp_path: Path) -> None:
    await stage.nodes(2)
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    queue = {**kind, "metadata": {"name": "fits-closed"}, "spec": {"weight": 1}}
    await stage.api.create(_QUEUES, queue)
    try:

        async def accepted() -> bool:
            status, said = await fits(stage, tmp_path, job(queue="fits-closed"))
            assert status == 0, said
            return True

        await eventually(accepted, timeout_s=SEEN_S, because="the API has the new queue")
        await commands_are_reviewed(stage.api)
        _, _, errors = await tutti(
            "queue", "operate", "--name=fits-closed", "--action=close", _kubeconfig(stage)
        )
        assert not errors

        # The planner, which the API asks after a dry run at the webhook, may see it closed first.
        async def refused_by_the_webhook() -> bool:
            status, said = await fits(stage, tmp_path, job(queue="fits-closed"))
            assert status == 2, said
            assert "spec.queue" in said
            assert "queue `fits-closed` status is" in said
            return True

        await eventually(
            refused_by_the_webhook, timeout_s=SEEN_S, because="the webhook saw it closed"
        )
    finally:
        await stage.api.delete(f"{_QUEUES}/fits-closed")


async def test_what_admission_takes_fits_or_has_to_wait(stage: Stage, tmp_path: Path) -> None:
    await stage.nodes(2)

    async def fits_now() -> bool:
        status, said = await fits(stage, tmp_path, job())
        assert status == 0, said
        assert "train: would fit now" in said
        return True

    await eventually(fits_now, timeout_s=SEEN_S, because="the planner knows the nodes")
    status, said = await fits(stage, tmp_path, job(cpu="4000"))
    assert status == 1, said
    stored = await stage.api.get(stage.path("jobs", version="batch.volcano.sh/v1alpha1"))
    assert not stored["items"]

"""The garbage collector on both API servers."""

from datetime import UTC, datetime

from services.controller.gc_controller import GarbageReconciler
from services.controller.reconciling.controller import Reconciler, Runtime
from shared.kube.client import KubeClient
from shared.kube.resources import JOBS_VOLCANO
from tests.services.controller.playing import Object, becomes, enter, make, read, running

#: A minute after the instants that `enter` writes.
NOW = datetime(2026, 1, 1, 0, 1, 0, tzinfo=UTC)


def job(name: str, ttl_s: int) -> Object:
    pod = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    tasks = [{"name": "w", "replicas": 1, "template": pod}]
    spec = {"ttlSecondsAfterFinished": ttl_s, "tasks": tasks}
    return {"metadata": {"name": name}, "spec": spec}


def collector(runtime: Runtime) -> Reconciler:
    return GarbageReconciler(runtime, lambda: NOW)


async def test_only_the_finished_job_whose_time_is_over_is_deleted(
    either: KubeClient, place: str
) -> None:
    for name, ttl_s, phase in (
        ("over", 50, "Completed"),
        ("kept", 100, "Completed"),
        ("runs", 50, "Running"),
    ):
        await make(either, JOBS_VOLCANO, job(name, ttl_s), place)
        await enter(either, place, name, phase)

    async def left() -> object:
        found = {name: await read(either, JOBS_VOLCANO, name, place) for name in ("over", "kept")}
        # In the foreground: a garbage collector takes what it owns first, and there is none here.
        return {
            name: thing is not None and "deletionTimestamp" not in thing["metadata"]
            for name, thing in found.items()
        }

    async with running(either, collector):
        await becomes(left, {"over": False, "kept": True})

    runs = await read(either, JOBS_VOLCANO, "runs", place)
    assert runs is not None
    assert "deletionTimestamp" not in runs["metadata"]

"""The garbage collector on both API servers."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from services.controller.gc_controller import GarbageReconciler, expires
from services.controller.reconciling.controller import Reconciler, Runtime
from shared.kinds.job import Job
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


ENDED = datetime(2026, 1, 1, tzinfo=UTC)


def finished_job(phase: str, ttl_s: int | None, **metadata: Any) -> Job:
    spec = {} if ttl_s is None else {"ttlSecondsAfterFinished": ttl_s}
    state = {"phase": phase, "lastTransitionTime": ENDED}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"state": state}}, Job)


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
@pytest.mark.parametrize("ttl_s", [0, 30])
def test_a_finished_job_expires_after_its_ttl(phase: str, ttl_s: int) -> None:
    assert expires(finished_job(phase, ttl_s)) == ENDED + timedelta(seconds=ttl_s)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Aborted", "Aborting", "Completing"])
def test_a_job_that_has_not_finished_does_not_expire(phase: str) -> None:
    assert expires(finished_job(phase, 0)) is None


def test_a_job_without_ttl_or_in_deletion_does_not_expire() -> None:
    assert expires(finished_job("Completed", None)) is None
    assert expires(finished_job("Completed", 0, deletionTimestamp=ENDED)) is None

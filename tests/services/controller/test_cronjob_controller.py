"""The CronJob controller on both API servers, on a clock of the test's."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.controller.cronjob_controller import CronJobReconciler
from services.controller.reconciling.controller import Reconciler, Runtime
from services.controller.reconciling.writes import Written
from shared.kube.client import KubeClient
from shared.kube.errors import KubeError, api_error
from shared.kube.resources import CRONJOBS_VOLCANO, JOBS_VOLCANO, Resource
from tests.services.controller.playing import (
    Object,
    becomes,
    enter,
    events,
    make,
    names_of,
    read,
    running,
)

POD = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
TEMPLATE = {"spec": {"tasks": [{"name": "w", "replicas": 1, "template": POD}]}}


class Clock:
    """The time, which the test moves; a touch of the CronJob has the controller look at it."""

    def __init__(self, client: KubeClient, place: str) -> None:
        self.now = datetime.now(UTC).replace(microsecond=0)
        self._client = client
        self._place = place

    def make(self, runtime: Runtime) -> Reconciler:
        return CronJobReconciler(runtime, lambda: self.now)

    async def go_on(self, minutes: int) -> str:
        """Returns the name of the Job that is due then."""
        self.now += timedelta(minutes=minutes)
        touch = {"metadata": {"annotations": {"now": str(self.now)}}}
        await self._client.patch(CRONJOBS_VOLCANO, "c", touch, namespace=self._place)
        return f"c-{int(self.now.timestamp()) // 60}"


def cron(**spec: Any) -> Object:
    return {
        "metadata": {"name": "c"},
        "spec": {"schedule": "* * * * *", "jobTemplate": TEMPLATE, **spec},
    }


async def test_a_job_that_is_replaced_goes_and_the_last_successful_one_is_dated(
    either: KubeClient, place: str
) -> None:
    clock = Clock(either, place)

    async def jobs() -> object:
        return await names_of(either, JOBS_VOLCANO, place)

    async def reported() -> object:
        found = await read(either, CRONJOBS_VOLCANO, "c", place)
        status = (found or {}).get("status", {})
        active = [one["name"] for one in status.get("active", [])]
        return active, status.get("lastSuccessfulTime")

    async with running(either, clock.make) as runtime:
        await make(either, CRONJOBS_VOLCANO, cron(concurrencyPolicy="Replace"), place)
        first = await clock.go_on(2)
        await becomes(jobs, [first])
        second = await clock.go_on(1)
        await becomes(jobs, [second])
        await becomes(reported, ([second], None))
        await enter(either, place, second, "Running", "Completed")
        await becomes(reported, ([], "2026-01-01T00:00:01Z"))
        await runtime.events.flush()

    assert await events(either, place, "c") == [
        ("Normal", "SawCompletedJob", f"Saw completed job: {second} in active, remove"),
        ("Normal", "SuccessfulCreate", f"Created job {first} for CronJob {place}/c"),
        ("Normal", "SuccessfulCreate", f"Created job {second} for CronJob {place}/c"),
        ("Normal", "SuccessfulDelete", f'Deleted job "{first}"'),
        ("Warning", "ReplaceConcurrent", "Replacing active job for CronJob"),
    ]


async def test_a_status_is_written_over_a_change_of_the_rest(
    either: KubeClient, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the Job is made, a user annotates the CronJob: its status names the Job anyway."""
    clock = Clock(either, place)
    await make(either, CRONJOBS_VOLCANO, cron(concurrencyPolicy="Replace"), place)

    async def active() -> object:
        found = await read(either, CRONJOBS_VOLCANO, "c", place)
        return [one["name"] for one in (found or {}).get("status", {}).get("active", [])]

    def make_overtaken(runtime: Runtime) -> Reconciler:
        create = runtime.writes.create

        async def create_and_touch(*args: Any, **options: Any) -> Written:
            written = await create(*args, **options)
            touch = {"metadata": {"annotations": {"touched": "meanwhile"}}}
            await either.patch(CRONJOBS_VOLCANO, "c", touch, namespace=place)
            return written

        # Between the making and the status; no hook of the product's own is there.
        monkeypatch.setattr(runtime.writes, "create", create_and_touch)
        return clock.make(runtime)

    async with running(either, make_overtaken) as runtime:
        first = await clock.go_on(2)
        await becomes(active, [first])
        await runtime.events.flush()

    assert await events(either, place, "c") == [
        ("Normal", "SuccessfulCreate", f"Created job {first} for CronJob {place}/c"),
    ]


async def test_a_start_that_was_killed_before_its_status_was_written_is_not_made_twice(
    either: KubeClient, place: str
) -> None:
    clock = Clock(either, place)
    await make(either, CRONJOBS_VOLCANO, cron(), place)

    async def active() -> object:
        found = await read(either, CRONJOBS_VOLCANO, "c", place)
        return [one["name"] for one in (found or {}).get("status", {}).get("active", [])]

    async with running(either, clock.make):
        first = await clock.go_on(2)
        await becomes(active, [first])
    before = await read(either, JOBS_VOLCANO, first, place)
    forgotten = {"status": {"active": None, "lastScheduleTime": None}}
    await either.patch(CRONJOBS_VOLCANO, "c", forgotten, namespace=place, subresource="status")
    async with running(either, clock.make):
        await becomes(active, [first])

    after = await read(either, JOBS_VOLCANO, first, place)
    assert before is not None
    assert after is not None
    assert before["metadata"]["uid"] == after["metadata"]["uid"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedule": "@reboot"}, "UnParseableCronJobSchedule"),
        ({"timeZone": "Mars/Base"}, "InvalidTimeZone"),
        ({"schedule": "TZ=UTC * * * * *"}, "UnsupportedSchedule"),
    ],
)
async def test_a_schedule_that_the_webhook_did_not_see_is_reported_and_never_run(
    either: KubeClient, place: str, spec: Object, reason: str
) -> None:
    clock = Clock(either, place)

    async def reported() -> object:
        return [found[1] for found in await events(either, place, "c")]

    async with running(either, clock.make):
        await make(either, CRONJOBS_VOLCANO, cron(**spec), place)
        await clock.go_on(5)
        await becomes(reported, [reason])

    assert await names_of(either, JOBS_VOLCANO, place) == []


async def test_of_the_jobs_that_were_terminated_no_more_are_kept_than_of_those_that_failed(
    either: KubeClient, place: str
) -> None:
    clock = Clock(either, place)

    async def jobs() -> object:
        return await names_of(either, JOBS_VOLCANO, place)

    async with running(either, clock.make):
        await make(either, CRONJOBS_VOLCANO, cron(failedJobsHistoryLimit=1), place)
        kept: list[str] = []
        for phases in (("Running", "Terminating", "Terminated"), ("Running", "Failed")) * 2:
            due = await clock.go_on(1)
            await becomes(jobs, sorted({*kept, due}))
            await enter(either, place, due, *phases)
            kept = [due]
            await becomes(jobs, kept)


@pytest.mark.parametrize("either", ["embedded"], indirect=True)
async def test_the_status_follows_the_jobs_while_the_next_one_is_refused(
    either: KubeClient, place: str
) -> None:
    """A quota is full: what has ended is said once, and the start is tried again."""
    clock = Clock(either, place)
    refusals: list[KubeError] = []

    def make_refused(runtime: Runtime) -> Reconciler:
        create = runtime.writes.create

        async def create_unless_refused(resource: Resource, *args: Any, **options: Any) -> Written:
            if refusals and resource == JOBS_VOLCANO:
                raise refusals[0]
            return await create(resource, *args, **options)

        runtime.writes.create = create_unless_refused  # type: ignore[method-assign]
        return clock.make(runtime)

    async def seen() -> object:
        found = await read(either, CRONJOBS_VOLCANO, "c", place)
        status = (found or {}).get("status", {})
        return [one["name"] for one in status.get("active", [])], status.get("lastSuccessfulTime")

    async with running(either, make_refused) as runtime:
        await make(either, CRONJOBS_VOLCANO, cron(), place)
        first = await clock.go_on(2)
        await becomes(seen, ([first], None))
        refusals.append(api_error(403, b"exceeded quota"))
        second = await clock.go_on(1)
        await enter(either, place, first, "Running", "Completed")
        await becomes(seen, ([], "2026-01-01T00:00:01Z"))
        refusals.clear()
        await becomes(seen, ([second], "2026-01-01T00:00:01Z"))
        await runtime.events.flush()
    said = [reason for _, reason, _ in await events(either, place, "c")]
    assert said.count("SawCompletedJob") == 1


@pytest.mark.parametrize("either", ["embedded"], indirect=True)
async def test_a_finished_job_that_may_not_be_deleted_delays_no_other_job(
    either: KubeClient, place: str
) -> None:
    clock = Clock(either, place)

    def make_refused(runtime: Runtime) -> Reconciler:
        async def refuse(*_args: Any, **_options: Any) -> Written:
            raise api_error(403, b"keep it")

        runtime.writes.delete = refuse  # type: ignore[method-assign]
        return clock.make(runtime)

    async def jobs() -> object:
        return await names_of(either, JOBS_VOLCANO, place)

    async with running(either, make_refused):
        await make(either, CRONJOBS_VOLCANO, cron(successfulJobsHistoryLimit=0), place)
        first = await clock.go_on(2)
        await becomes(jobs, [first])
        await enter(either, place, first, "Running", "Completed")
        second = await clock.go_on(1)
        await becomes(jobs, [first, second])

"""Volcano's e2e/cronjob: every minute again, until the CronJob is changed."""

import asyncio
from datetime import datetime
from typing import Any, Final

import pytest

from tests.controlplane.client import Object
from tests.support.waiting import eventually
from tests.volcano_e2e.cluster import Cluster
from tests.volcano_e2e.manifests import BUSYBOX, job, task
from tests.volcano_e2e.together import all_hold

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.certify,
    pytest.mark.timeout(420),
]

#: Two starts, and what they take.
STARTED_S: Final = 150.0
#: A start that was not to be would have come by then.
QUIET_S: Final = 130.0
LOOK_S: Final = 2.0
AT: Final = "volcano.sh/cronjob-scheduled-timestamp"
LASTS: Final = "sleep 12m"
ENDS: Final = "echo run"
FAILS: Final = "echo run; exit 1"
FINISHED: Final = frozenset({"Completed", "Failed", "Terminated"})


def every_minute(name: str, line: str, **spec: Any) -> Object:
    one = task("cron", 1, image=BUSYBOX, line=line, restart="Never")
    template = {"spec": job("template", one)["spec"] | {"maxRetry": 1}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": "* * * * *", "jobTemplate": template, **spec},
    }


async def jobs_of(e2e: Cluster, cron: Object) -> list[Object]:
    uid = cron["metadata"]["uid"]
    return [
        one
        for one in await e2e.all_of("Job")
        if any(owner["uid"] == uid for owner in one["metadata"].get("ownerReferences", ()))
    ]


def phase(one: Object) -> str:
    return str(one.get("status", {}).get("state", {}).get("phase", ""))


async def active(e2e: Cluster, name: str) -> int:
    return len((await e2e.get("CronJob", name)).get("status", {}).get("active", ()))


async def has_jobs(e2e: Cluster, cron: Object, least: int) -> list[Object]:
    async def there() -> list[Object]:
        found = await jobs_of(e2e, cron)
        assert len(found) >= least, [one["metadata"]["name"] for one in found]
        return found

    return await eventually(there, timeout_s=STARTED_S, because=f"{least} jobs were started")


async def starts_again_and_again(e2e: Cluster) -> None:
    cron = await e2e.create(every_minute("basic", ENDS))
    jobs = await has_jobs(e2e, cron, 2)
    datetime.fromisoformat(jobs[0]["metadata"]["annotations"][AT])
    status = (await e2e.get("CronJob", "basic"))["status"]
    assert status["lastScheduleTime"]
    await e2e.delete("CronJob", "basic")


async def starts_nothing_suspended(e2e: Cluster) -> None:
    cron = await e2e.create(every_minute("suspended", ENDS, suspend=True))
    await asyncio.sleep(QUIET_S)
    assert not await jobs_of(e2e, cron)


async def lets_them_overlap(e2e: Cluster) -> None:
    cron = await e2e.create(every_minute("allow", LASTS, concurrencyPolicy="Allow"))

    async def two() -> bool:
        running = [one for one in await jobs_of(e2e, cron) if phase(one) not in FINISHED]
        assert await active(e2e, "allow") >= 2
        return len(running) >= 2

    await eventually(two, timeout_s=STARTED_S, because="two run at once")


async def lets_one_run(e2e: Cluster, name: str, policy: str) -> list[str]:
    """Never more than one at a time, over two further starts: names of all that ran."""
    cron = await e2e.create(every_minute(name, LASTS, concurrencyPolicy=policy))
    await has_jobs(e2e, cron, 1)
    seen: dict[str, None] = {}
    for _ in range(int(QUIET_S / LOOK_S)):
        await asyncio.sleep(LOOK_S)
        assert await active(e2e, name) <= 1
        running = [one for one in await jobs_of(e2e, cron) if phase(one) == "Running"]
        assert len(running) <= 1
        seen |= dict.fromkeys(one["metadata"]["name"] for one in running)
    return list(seen)


async def forbids_a_second(e2e: Cluster) -> None:
    assert len(await lets_one_run(e2e, "forbid", "Forbid")) == 1


async def replaces_the_first(e2e: Cluster) -> None:
    assert len(await lets_one_run(e2e, "replace", "Replace")) >= 2


async def keeps_one_that_ended(e2e: Cluster, name: str, line: str, kept: str, **limit: int) -> None:
    """The one that ended first is not active any more, and goes when the next has ended."""
    cron = await e2e.create(every_minute(name, line, **limit))

    async def ended() -> str:
        found = [one for one in await jobs_of(e2e, cron) if phase(one) == kept]
        assert found
        return str(found[0]["metadata"]["name"])

    first = await eventually(ended, timeout_s=STARTED_S, because=f"one is {kept}")

    async def inactive() -> bool:
        status = (await e2e.get("CronJob", name))["status"]
        return all(one["name"] != first for one in status.get("active", ()))

    await eventually(inactive, because="what ended is not active")
    await e2e.is_gone("Job", first, timeout_s=STARTED_S)
    found = [one for one in await jobs_of(e2e, cron) if phase(one) == kept]
    assert len(found) == 1


async def test_cron_jobs_start_when_they_are_to_and_only_then(e2e: Cluster) -> None:
    await all_hold(
        {
            "basic": starts_again_and_again(e2e),
            "suspended": starts_nothing_suspended(e2e),
            "allow": lets_them_overlap(e2e),
            "forbid": forbids_a_second(e2e),
            "replace": replaces_the_first(e2e),
            "successes": keeps_one_that_ended(
                *(e2e, "successes", ENDS, "Completed"), successfulJobsHistoryLimit=1
            ),
            "failures": keeps_one_that_ended(
                *(e2e, "failures", FAILS, "Failed"), failedJobsHistoryLimit=1
            ),
        }
    )

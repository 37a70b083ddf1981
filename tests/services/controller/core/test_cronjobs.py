"""CronJobs make Jobs when they are due, and forget those that are not kept."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from services.controller.core.cronjobs import CronPlan, job_of, plan, with_job
from shared.kinds.cron_schedule import parse
from shared.kinds.cronjob import CronJob
from shared.kinds.job import Job

MADE = datetime(2026, 3, 27, 12, 0, 20, tzinfo=UTC)


def at(minutes: float) -> datetime:
    """So many minutes after 12:00."""
    return MADE.replace(second=0) + timedelta(minutes=minutes)


def cron(schedule: str = "* * * * *", **fields: Any) -> CronJob:
    status = fields.pop("status", {})
    return msgspec.convert(
        {
            "metadata": {"name": "c", "namespace": "lab", "uid": "u", "creationTimestamp": MADE},
            "spec": {"schedule": schedule, "jobTemplate": {}, **fields},
            "status": status,
        },
        CronJob,
    )


def job(name: str, phase: str = "Running", made: float = 0) -> Job:
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": f"u-{name}", "creationTimestamp": at(made)},
            "status": {"state": {"phase": phase, "lastTransitionTime": at(made + 1)}},
        },
        Job,
    )


def planned(given: CronJob, *jobs: Job, now: datetime) -> CronPlan:
    return plan(given, jobs, now, parse(given.spec.schedule), UTC)


def reasons(decided: CronPlan) -> list[str]:
    return [news.reason for news in decided.events]


def test_nothing_is_started_before_it_is_due() -> None:
    decided = planned(cron(), now=at(0.9))

    assert decided.start is None
    assert decided.next == at(1)
    assert decided.status.last_schedule_time is None


def test_a_deadline_longer_than_the_calendar_is_none() -> None:
    assert planned(cron(startingDeadlineSeconds=2**62), now=at(1)).start == at(1)


def test_what_is_due_is_started_once() -> None:
    decided = planned(cron(), now=at(1))
    later = cron(status={"lastScheduleTime": at(1)})

    assert decided.start == at(1)
    assert decided.status.last_schedule_time == at(1)
    assert planned(later, now=at(1.5)).start is None


def test_of_many_missed_starts_only_the_last_is_made_up_for() -> None:
    few = planned(cron(), now=at(30.5))
    many = planned(cron(), now=at(60 * 24 * 40 + 0.5))
    rare = planned(cron("0 3 1 1 *"), now=at(60 * 24 * 365 * 3))

    assert (few.start, reasons(few)) == (at(30), [])
    assert (many.start, reasons(many)) == (at(60 * 24 * 40), ["TooManyMissedTimes"])
    assert rare.start == datetime(2029, 1, 1, 3, 0, tzinfo=UTC)


def test_the_last_of_many_starts_is_found_behind_a_long_pause() -> None:
    """Every minute, but only in the first hour of a day; now it is evening."""
    decided = planned(cron("* 0 * * *"), now=at(60 * 24 * 5 + 60 * 10))

    assert decided.start == datetime(2026, 4, 1, 0, 59, tzinfo=UTC)
    assert reasons(decided) == ["TooManyMissedTimes"]


def test_a_start_that_is_later_than_its_deadline_is_skipped() -> None:
    hourly = cron("0 * * * *", startingDeadlineSeconds=60)

    assert planned(hourly, now=at(60.5)).start == at(60)
    assert planned(hourly, now=at(62)).start is None


def test_every_counts_from_the_last_start() -> None:
    decided = planned(cron("@every 90s"), now=MADE + timedelta(seconds=200))

    assert decided.start == MADE + timedelta(seconds=180)
    assert decided.next == MADE + timedelta(seconds=270)


def test_a_suspended_cronjob_starts_nothing_but_goes_on_clearing_away() -> None:
    ended = [job(f"j{number}", "Completed", number) for number in range(5)]

    decided = planned(cron(suspend=True), *ended, now=at(10))

    assert (decided.start, decided.next) == (None, None)
    assert [one.metadata.name for one in decided.delete] == ["j0", "j1"]


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
def test_a_start_that_was_made_but_not_written_down_is_not_in_its_own_way(policy: str) -> None:
    made = job_of(cron(), at(2), UTC).metadata.name

    decided = planned(cron(concurrencyPolicy=policy), job(made, made=2), now=at(2.5))

    assert (decided.start, decided.delete, reasons(decided)) == (None, (), [])
    assert decided.status.last_schedule_time == at(2)
    assert [one.name for one in decided.status.active] == [made]


@pytest.mark.parametrize(
    ("policy", "start", "deleted", "news"),
    [
        ("Allow", at(1), [], []),
        ("Forbid", None, [], ["ForbidConcurrent"]),
        ("Replace", at(1), ["old"], ["ReplaceConcurrent"]),
    ],
)
def test_the_policy_says_what_happens_beside_a_job_that_still_runs(
    policy: str, start: datetime | None, deleted: list[str], news: list[str]
) -> None:
    decided = planned(cron(concurrencyPolicy=policy), job("old"), now=at(1))

    assert decided.start == start
    assert [one.metadata.name for one in decided.delete] == deleted
    assert reasons(decided) == news
    assert [one.name for one in decided.status.active] == ([] if deleted else ["old"])


@pytest.mark.parametrize(
    ("phase", "blocks"),
    [("Running", True), ("Aborted", True), ("Completed", False), ("Failed", False)],
)
def test_a_job_blocks_until_it_has_finished(phase: str, blocks: bool) -> None:
    decided = planned(cron(concurrencyPolicy="Forbid"), job("old", phase), now=at(1))

    assert (decided.start is None) == blocks


def test_the_end_and_the_loss_of_active_jobs_are_reported_and_the_success_is_dated() -> None:
    active = [{"name": name, "uid": f"u-{name}"} for name in ("done", "lost", "goes-on")]
    given = cron(suspend=True, status={"active": active})

    decided = planned(given, job("done", "Completed", 3), job("goes-on"), now=at(5))

    assert [(news.reason, news.message) for news in decided.events] == [
        ("SawCompletedJob", "Saw completed job: done in active, remove"),
        ("StaleReference", "Active job went missing: lost"),
    ]
    assert [one.name for one in decided.status.active] == ["goes-on"]
    assert decided.status.last_successful_time == at(4)


def test_history_limits_count_completed_jobs_and_those_that_failed_or_were_terminated() -> None:
    jobs = [job(f"Completed{n}", "Completed", n) for n in range(3)]
    jobs += [job("Failed0", "Failed", 0), job("Terminated1", "Terminated", 1)]
    jobs += [job("Failed2", "Failed", 2), job("Terminated3", "Terminated", 3)]
    jobs += [job(f"Aborted{n}", "Aborted", n) for n in range(9)]
    given = cron(suspend=True, successfulJobsHistoryLimit=0, failedJobsHistoryLimit=1)

    assert [one.metadata.name for one in planned(given, *jobs, now=at(9)).delete] == [
        "Completed0",
        "Completed1",
        "Completed2",
        "Failed0",
        "Terminated1",
        "Failed2",
    ]


def test_a_job_says_when_it_was_due_on_the_zones_clock() -> None:
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"n": "o"}},
        "spec": {"queue": "q"},
    }

    made = job_of(cron(jobTemplate=template), at(1), ZoneInfo("Asia/Tokyo"))
    utc = job_of(cron(), at(1), UTC)

    assert made.metadata.name == f"c-{int(at(1).timestamp()) // 60}" == utc.metadata.name
    assert made.metadata.labels == {"a": "b"}
    due = "volcano.sh/cronjob-scheduled-timestamp"
    assert made.metadata.annotations == {"n": "o", due: "2026-03-27T21:01:00+09:00"}
    assert utc.metadata.annotations == {due: "2026-03-27T12:01:00Z"}
    assert made.spec.queue == "q"


def test_a_job_that_was_made_is_active_once() -> None:
    made = job("new")
    status = with_job(planned(cron(), now=at(1)).status, made)

    assert with_job(status, made) == status
    assert [one.name for one in status.active] == ["new"]

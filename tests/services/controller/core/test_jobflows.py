"""JobFlows start their steps in order, and their status has the history."""

from datetime import UTC, datetime, timedelta

import msgspec

from services.controller.core.jobflows import job_of, plan
from shared.kinds.job import Job
from shared.kinds.jobflow import JobFlow, JobTemplate

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(second: int) -> datetime:
    return T0 + timedelta(seconds=second)


def flow(*steps: tuple[str, list[str]], retain: str = "retain") -> JobFlow:
    flows = [{"name": name, "dependsOn": {"targets": targets}} for name, targets in steps]
    return msgspec.convert(
        {
            "metadata": {"name": "f", "namespace": "lab", "uid": "u"},
            "spec": {"flows": flows, "jobRetainPolicy": retain},
        },
        JobFlow,
    )


def job(name: str, *phases: str, since: int = 0) -> Job:
    """A Job that entered these phases, one a second."""
    conditions = [
        {"status": phase, "lastTransitionTime": at(since + second)}
        for second, phase in enumerate(phases)
    ]
    status = {"state": {"phase": phases[-1]}, "conditions": conditions} if phases else {}
    metadata = {"name": name, "namespace": "lab", "creationTimestamp": T0}
    return msgspec.convert({"metadata": metadata, "status": status}, Job)


def after(before: JobFlow, *jobs: Job) -> JobFlow:
    """The flow once the plan for these Jobs was carried out."""
    table = {one.metadata.name: one for one in jobs}
    return msgspec.structs.replace(before, status=plan(before, table).status)


def started(given: JobFlow, *jobs: Job) -> list[str]:
    return [step.name for step in plan(given, {one.metadata.name: one for one in jobs}).start]


CHAIN: tuple[tuple[str, list[str]], ...] = ("one", []), ("two", ["one"]), ("three", ["two"])
DONE = "Pending", "Running", "Completed"


def test_steps_start_when_all_that_they_depend_on_are_completed() -> None:
    fan_in: tuple[tuple[str, list[str]], ...] = ("one", []), ("two", []), ("three", ["one", "two"])

    assert started(flow(*fan_in)) == ["one", "two"]
    assert started(flow(*fan_in), job("f-one", *DONE), job("f-two", "Running")) == []
    assert started(flow(*fan_in), job("f-one", *DONE), job("f-two", *DONE)) == ["three"]


def test_a_flow_runs_while_a_step_does_and_succeeds_with_the_last() -> None:
    fresh = after(flow(*CHAIN))
    running = after(fresh, job("f-one", "Pending", "Running"))
    done = after(running, *(job(f"f-{name}", *DONE) for name in ("one", "two", "three")))

    assert [one.status.state.phase for one in (fresh, running, done)] == [
        "Pending",
        "Running",
        "Succeed",
    ]
    assert running.status.running_jobs == ("f-one",)
    assert done.status.completed_jobs == ("f-one", "f-three", "f-two")


def test_a_failed_or_terminated_step_fails_the_flow_for_good() -> None:
    for last in ("Failed", "Terminated"):
        failed = after(flow(*CHAIN), job("f-one", "Pending", "Running", last))

        assert failed.status.state.phase == "Failed"
        assert started(failed) == []
        assert after(failed, job("f-one", *DONE)).status.state.phase == "Failed"


def test_an_aborted_step_stops_nothing_for_good() -> None:
    running = after(flow(*CHAIN), job("f-one", "Pending", "Running"))
    aborted = after(running, job("f-one", "Pending", "Running", "Aborting", "Aborted"))

    assert aborted.status.state.phase == "Running"
    assert aborted.status.unknown_jobs == ("f-one",)


def test_a_completed_step_whose_job_is_gone_is_not_run_again_but_an_unfinished_one_is() -> None:
    done = after(flow(*CHAIN), job("f-one", *DONE))
    running = after(flow(*CHAIN), job("f-one", "Running"))

    assert started(done) == ["two"]
    assert after(done).status.completed_jobs == ("f-one",)
    assert after(done).status.conditions["f-one"].phase == "Completed"
    assert started(running) == ["one"]


def test_jobs_that_are_not_retained_go_when_all_are_done_and_the_status_stays() -> None:
    jobs = [job(f"f-{name}", *DONE) for name in ("one", "two", "three")]
    done = after(flow(*CHAIN, retain="delete"), *jobs)

    decided = plan(done, {one.metadata.name: one for one in jobs})

    assert [one.metadata.name for one in decided.delete] == ["f-one", "f-three", "f-two"]
    assert decided.status == done.status
    assert plan(done, {}).status == done.status
    assert plan(done, {}).start == ()


def test_a_phase_that_is_entered_again_is_reported_twice() -> None:
    before = after(flow(("one", [])), job("f-one", "Pending", "Running"))
    aborted = after(before, job("f-one", "Pending", "Running", "Aborting", "Aborted"))
    again = job("f-one", "Aborting", "Aborted", "Restarting", "Pending", "Running", since=2)

    (status,) = after(aborted, again).status.job_status_list

    assert [one.state for one in status.running_histories] == [
        "Pending",
        "Running",
        "Aborting",
        "Aborted",
        "Restarting",
        "Pending",
        "Running",
    ]
    assert status.running_histories[0].end_timestamp == at(1)
    assert status.running_histories[-1].end_timestamp is None


def test_a_reported_transition_is_reported_again_in_the_same_words() -> None:
    once = after(flow(*CHAIN), job("f-one", *DONE), job("f-two", "Pending"))

    assert after(once, job("f-one", *DONE), job("f-two", "Pending")) == once


def test_a_steps_job_is_its_template_with_the_flows_marks() -> None:
    spec = {"queue": "q", "tasks": [{"name": "w", "replicas": 1, "template": {"a": {"b": 1}}}]}
    template = msgspec.convert({"metadata": {"name": "one"}, "spec": spec}, JobTemplate)
    given = flow(("one", []))

    made = msgspec.to_builtins(job_of(given, given.spec.flows[0], template))

    marks = {
        "volcano.sh/createdByJobTemplate": "lab.one",
        "volcano.sh/createdByJobFlow": "lab.f",
    }
    assert made["metadata"]["name"] == "f-one"
    assert made["metadata"]["labels"] == made["metadata"]["annotations"] == marks
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert made["spec"]["tasks"][0]["template"] == {"a": {"b": 1}}

"""What Volcano's dashboards ask of the scheduler, from a planner at work."""

from typing import Any

import pytest

from services.gang_planner.reporting import Reporting
from services.gang_planner.volcano_metrics import JOBS_SHOWN_MAX
from shared.contracts.decisions import EvictionDecision, GangDecision
from shared.contracts.outcomes import Outcome
from shared.contracts.verdicts import Verdict
from shared.model.objects import Queue
from shared.telemetry.metrics import Metrics
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)


class Shown:
    """A reporting that is fed by a scene, and what it shows."""

    def __init__(self) -> None:
        self.metrics = Metrics("gang-planner")
        self.reporting = Reporting(self.metrics, lambda: 0)

    def take(self, step: Any) -> None:
        for seq, record in enumerate((*step.decisions, *step.notes), start=1):
            self.reporting.appended(seq, record)
        for verdict in step.verdicts:
            self.reporting.published(verdict)

    def __getitem__(self, name: str) -> dict[str, float]:
        """Series of one metric, by the values of their labels."""
        found = {}
        for family in self.metrics.registry.collect():
            for sample in family.samples:
                if sample.name == f"volcano_{name}":
                    found[",".join(sample.labels.values())] = sample.value
        return found


def verdict(**fields: Any) -> Verdict:
    given = {
        "gang_id": "g", "epoch": 1, "at_ms": 5_000, "dialect": "volcano", "namespace": "team",
        "name": "train", "queue": "q1", "phase": "Running", "first_seen_ms": 2_000, **fields,
    }  # fmt: skip
    return Verdict(**given)


def test_queues_show_what_they_hold_in_volcanos_units() -> None:
    queue = Queue(
        uid="q1",
        name="q1",
        dialect="volcano",
        resource_version=1,
        weight=3,
        capability=(("cpu", 8000), (GPU, 4)),
    )
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(queue)
    scene.put(make_group("train", 2, queue="q1"))
    scene.put(*make_pods("train", 2, make_shape({"cpu": 1500, "memory": 1 << 30, GPU: 1})))
    scene.step()
    shown = Shown()
    shown.reporting.volcano.watch(scene.planner.queue_figures)
    assert shown["queue_allocated_milli_cpu"]["q1"] == 3000
    assert shown["queue_allocated_memory_bytes"]["q1"] == 2 << 30
    assert shown["queue_allocated_scalar_resources"][f"q1,{GPU}"] == 2000
    assert shown["queue_allocated_scalar_resources"]["q1,pods"] == 2
    assert shown["queue_request_milli_cpu"]["q1"] == 3000
    assert shown["queue_capacity_milli_cpu"]["q1"] == 8000
    assert shown["queue_real_capacity_scalar_resources"][f"q1,{GPU}"] == 4000
    assert shown["queue_weight"]["q1"] == 3
    assert "default" not in shown["queue_capacity_milli_cpu"], "no limit is not a limit of 0"
    scene.put(make_group("large", 9, queue="q1"))
    scene.put(*make_pods("large", 9, make_shape({"cpu": 1000})))
    scene.step()
    assert shown["queue_request_milli_cpu"] == {"default": 0, "q1": 3000 + 9 * 1000}
    assert shown["queue_overused"]["q1"] in {0, 1}
    assert set(shown["queue_share"]) >= {"default", "q1"}


def test_a_job_has_series_while_it_waits_and_none_when_it_is_gone() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("train", 2))
    scene.put(*make_pods("train", 2, make_shape({GPU: 1})))
    shown = Shown()
    shown.take(scene.step())
    (job,) = shown["unschedule_task_count"]
    assert shown["unschedule_task_count"][job] == 2
    assert shown["unschedule_job_count"] == {"": 1}
    assert shown["e2e_job_scheduling_duration"] == {}, "it is not over"
    assert shown["schedule_attempts_total"]["unschedulable"] == 2
    said = verdict(gang_id="other", attempt=3)
    shown.reporting.published(said)
    assert shown["job_retry_counts"] == {"team/train": 2}
    assert shown["e2e_job_scheduling_duration"]["train,q1,team"] == 3_000
    assert shown["e2e_job_scheduling_start_time"]["train,q1,team"] == 2
    shown.reporting.published(verdict(gang_id="other", phase="Gone"))
    assert shown["job_retry_counts"] == {}
    assert "train,q1,team" not in shown["e2e_job_scheduling_last_time"]


def test_of_many_jobs_those_that_changed_last_have_series() -> None:
    shown = Shown()
    for index in range(JOBS_SHOWN_MAX + 5):
        shown.reporting.published(verdict(gang_id=str(index), name=f"job-{index}", attempt=2))
    shown.reporting.published(verdict(gang_id="1", name="job-1", attempt=3))
    retries = shown["job_retry_counts"]
    assert len(retries) == JOBS_SHOWN_MAX
    assert retries["team/job-1"] == 2
    assert "team/job-2" not in retries


def test_what_an_earlier_planner_said_is_shown_but_not_counted_again() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("train", 2))
    scene.put(*make_pods("train", 2, make_shape({GPU: 1})))
    shown = Shown()
    for said in scene.step().verdicts:
        shown.reporting.volcano.verdict_recalled(said)
    assert list(shown["unschedule_task_count"].values()) == [2]
    assert shown["schedule_attempts_total"]["unschedulable"] == 0


def test_decided_pods_and_the_wait_for_a_first_decision_are_counted() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(make_group("train", 2))
    scene.put(*make_pods("train", 2, make_shape({GPU: 1})))
    step = scene.step()
    assert any(isinstance(each, GangDecision) for each in step.decisions)
    shown = Shown()
    shown.take(step)
    (decision,) = [each for each in step.decisions if isinstance(each, GangDecision)]
    for bound, at_ms in [(2, decision.first_seen_ms + 70), (0, 0)]:
        outcome = Outcome(
            gang_id=decision.gang_id, decision_seq=1, epoch=1, binder="b", delivered=1, bound=bound
        )
        shown.reporting.volcano.outcome_applied(outcome, at_ms)
    assert shown["task_scheduling_latency_milliseconds_count"] == {"Assumed": 2, "Bound": 2}
    assert shown["task_scheduling_latency_milliseconds_sum"]["Bound"] == 140
    assert shown["schedule_attempts_total"]["scheduled"] == 2
    assert shown["e2e_job_scheduling_latency_milliseconds_count"] == {"": 1}


def test_each_run_of_an_action_is_measured() -> None:
    scene = Scene([make_node("n0")])
    shown = Shown()
    scene.planner.on_action(shown.reporting.volcano.action_began)
    scene.put(make_group("train", 1))
    scene.put(*make_pods("train", 1, make_shape({GPU: 1})))
    scene.step()
    runs = shown["action_scheduling_latency_milliseconds_count"]
    assert set(runs) == {"enqueue", "allocate", "backfill"}
    assert len(set(runs.values())) == 1


@pytest.mark.parametrize(
    ("reason", "action", "attempts"),
    [("Preempted", "preempt", 1), ("Reclaimed", "reclaim", 1), ("RepairDeadline", "", 0)],
)
def test_evictions_for_others_are_counted_by_action_and_releases_are_not(
    reason: str, action: str, attempts: int
) -> None:
    shown = Shown()
    scene = Scene([make_node("n0")])
    scene.put(make_group("train", 1))
    scene.put(*make_pods("train", 1, make_shape({GPU: 1})))
    (decision,) = [each for each in scene.step().decisions if isinstance(each, GangDecision)]
    eviction = EvictionDecision(
        gang_id="g", gang="team/g", epoch=1, attempt=1, victims=(), via="eviction", reason=reason,
        trace_id="", cycle=decision.cycle,
    )  # fmt: skip
    shown.reporting.appended(9, eviction)
    assert shown["total_preemption_attempts"] == {"": attempts}
    counted = {key: value for key, value in shown["eviction_transactions_total"].items() if value}
    assert counted == ({action: 1} if action else {})

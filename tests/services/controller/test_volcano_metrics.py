"""What Volcano's dashboards ask of the controllers, from caches that are fed by hand."""

import itertools
from typing import Any

import msgspec
import pytest

from services.controller import volcano_metrics
from services.controller.reconciling.controller import Share
from services.controller.reconciling.informer import Informer, Informers
from services.controller.reconciling.work_queue import WorkQueue
from services.controller.volcano_metrics import ControllerMetrics
from shared.kinds.job import Job
from shared.kinds.jobflow import JobFlow
from shared.kinds.podgroup import PodGroup
from shared.kube.client import KubeClient
from shared.kube.credentials import Credentials
from shared.kube.kubeconfig import Access
from shared.kube.listwatch import Listed
from shared.kube.resources import JOBFLOWS, JOBS_VOLCANO, PODGROUPS_VOLCANO
from shared.telemetry.metrics import Metrics
from tests.services.controller.playing import Alone

CREATED_MS = 1_767_225_600_000
VERSIONS = itertools.count(1)


class Elsewhere:
    """The share of a replica that owns nothing."""

    def owns(self, _key: str) -> bool:
        return False

    def join(self, queue: WorkQueue, keys: Any) -> None:
        raise AssertionError("metrics never join")


class Controllers:
    """Caches without an API server, and the metrics that follow them."""

    def __init__(self, share: Share) -> None:
        access = Access(origin="test", server="http://127.0.0.1:1")
        informers = Informers(KubeClient(Credentials(access)))
        self.metrics = Metrics("controller")
        made = ControllerMetrics(self.metrics, lambda: CREATED_MS + 1_500)
        made.watch(informers, ["job", "jobflow", "queue"], share)
        self.jobs = informers.of(JOBS_VOLCANO, Job)
        self.flows = informers.of(JOBFLOWS, JobFlow)
        self.groups = informers.of(PODGROUPS_VOLCANO, PodGroup)

    def __getitem__(self, name: str) -> dict[str, float]:
        found = {}
        for family in self.metrics.registry.collect():
            for sample in family.samples:
                if sample.name == f"volcano_{name}":
                    found[",".join(sample.labels.values())] = sample.value
        return found


def put(informer: Informer[Any], name: str, **fields: Any) -> None:
    metadata = {
        "name": name,
        "namespace": "team",
        "uid": name,
        "resourceVersion": str(next(VERSIONS)),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    informer.learn(msgspec.json.encode({"metadata": metadata, **fields}))


def job(phase: str, queue: str = "q1", **counts: int) -> dict[str, Any]:
    return {"spec": {"queue": queue}, "status": {"state": {"phase": phase}, **counts}}


@pytest.fixture
def controllers() -> Controllers:
    return Controllers(Alone())


def test_a_job_is_counted_each_time_it_enters_a_final_phase(controllers: Controllers) -> None:
    for phase in ("Pending", "Failed", "Failed", "Pending", "Failed", "Completed"):
        put(controllers.jobs, "train", **job(phase))
    assert controllers["job_failed_phase_count"] == {"team/train,q1": 2}
    assert controllers["job_completed_phase_count"] == {"team/train,q1": 1}


async def test_a_job_that_is_gone_has_no_series(controllers: Controllers) -> None:
    put(controllers.jobs, "train", **job("Running"))
    put(controllers.jobs, "train", **job("Completed"))
    await controllers.jobs._take(Listed([], next(VERSIONS)))
    assert controllers["job_completed_phase_count"] == {}


def test_what_was_final_before_we_came_is_not_counted(controllers: Controllers) -> None:
    put(controllers.jobs, "train", **job("Completed"))
    assert controllers["job_completed_phase_count"] == {}


def test_the_time_to_the_first_pods_is_measured_once_for_each_job(
    controllers: Controllers,
) -> None:
    put(controllers.jobs, "train", **job(""))
    put(controllers.jobs, "train", **job("Pending", pending=2))
    put(controllers.jobs, "train", **job("Aborted", version=1))
    put(controllers.jobs, "train", **job("Pending", pending=2, version=1))
    name = "controller_job_to_pod_creation_latency_milliseconds"
    assert controllers[f"{name}_count"] == {"": 1}
    assert controllers[f"{name}_sum"] == {"": 1_500}


def test_groups_are_counted_by_queue_and_phase(controllers: Controllers) -> None:
    for name, queue, phase in [("a", "q1", "Running"), ("b", "q1", "Running"), ("c", "q2", "")]:
        put(controllers.groups, name, spec={"queue": queue}, status={"phase": phase})
    assert controllers["queue_pod_group_running_count"] == {"q1": 2, "q2": 0}
    assert controllers["queue_pod_group_pending_count"] == {"q1": 0, "q2": 1}


def test_flows_are_counted_by_namespace(controllers: Controllers) -> None:
    for phase in ("Running", "Succeed"):
        put(controllers.flows, "flow", status={"state": {"phase": phase}})
    assert controllers["jobflow_succeed_phase_count"] == {"team": 1}
    assert controllers["jobflow_failed_phase_count"] == {}


def test_a_replica_shows_nothing_that_another_one_owns() -> None:
    controllers = Controllers(Elsewhere())
    put(controllers.jobs, "train", **job("Running"))
    put(controllers.jobs, "train", **job("Completed"))
    put(controllers.groups, "a", spec={"queue": "q1"}, status={"phase": "Running"})
    assert controllers["job_completed_phase_count"] == {}
    assert controllers["queue_pod_group_running_count"] == {}


def test_names_that_come_and_go_leave_no_more_series_than_are_shown(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job may change its queue before it is gone, and a namespace has no end that is seen."""
    monkeypatch.setattr(volcano_metrics, "SERIES_MAX", 3)
    for index in range(10):
        put(controllers.jobs, "train", **job("Running", queue=f"q{index}"))
        put(controllers.jobs, "train", **job("Failed", queue=f"q{index}"))
    names = [f"team/train,q{index}" for index in (7, 8, 9)]
    assert controllers["job_failed_phase_count"] == dict.fromkeys(names, 1)

"""Roles whose pods come only when the other roles run must not keep these from running."""

from typing import Any

import pytest

from shared.model.objects import Owner, Queue
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

CPU = make_shape({"cpu": 1000})
LATE = (("tutti.dev/late-roles", "launcher"),)
MPI_JOB = Owner(api_version="kubeflow.org/v1", kind="MPIJob", name="job", uid="mpi")
OTHER = Owner(api_version="example.com/v1", kind="RayLikeJob", name="job", uid="ray")


def scene(size: int, owner: Owner, **group: Any) -> Scene:
    """A gang of `size` of which only three workers exist."""
    found = Scene([make_node("n0")])
    found.put(make_group("job", size, owner=owner, **group))
    found.put(*make_pods("job", 3, CPU, owner=owner, created_ms=found.now_ms))
    return found


def test_a_role_that_the_annotation_names_is_not_waited_for() -> None:
    (decision,) = scene(4, OTHER, settings=LATE).settle()
    assert len(decision.bindings) == 3


def test_without_the_annotation_all_are_waited_for() -> None:
    found = scene(4, OTHER)
    assert found.settle() == []
    assert found.step(after_ms=60_000).decisions == []


def test_a_launcher_that_comes_is_placed_and_counts() -> None:
    found = scene(4, OTHER, settings=LATE)
    (decision,) = found.settle()
    found.bind(decision, phase="Running")
    found.settle()
    found.put(*make_pods("job", 1, CPU, role="launcher", owner=OTHER))
    (decision,) = found.settle()
    assert [one.name for one in decision.bindings] == ["job-launcher-0"]
    gang = found.state.gangs.by_id["group-job"]
    found.bind(decision, phase="Running")
    found.settle()
    assert (gang.late.roles, gang.min_member) == ({}, 4)


def test_a_role_of_which_a_pod_is_there_already_is_placed_with_the_others() -> None:
    found = scene(4, OTHER, settings=LATE)
    found.put(*make_pods("job", 1, CPU, role="launcher", owner=OTHER))
    (decision,) = found.settle()
    assert len(decision.bindings) == 4


@pytest.mark.parametrize(
    ("text", "size", "bound"),
    [("launcher=2,driver", 6, 3), ("launcher=2,driver", 7, 0)],
    ids=["all that is missing is late", "a worker is missing, too"],
)
def test_several_roles_are_late_with_their_numbers(text: str, size: int, bound: int) -> None:
    found = scene(size, OTHER, settings=(("tutti.dev/late-roles", text),))
    assert sum(len(one.bindings) for one in found.settle()) == bound


def test_no_gang_starts_without_a_pod_that_is_there() -> None:
    found = scene(3, OTHER, settings=(("tutti.dev/late-roles", "launcher=2"),))
    found.change("job-worker-0", gates=("wait",))
    assert found.settle() == []


def test_a_role_of_which_one_of_two_pods_is_there_is_waited_for() -> None:
    found = scene(5, OTHER, settings=(("tutti.dev/late-roles", "launcher=2"),))
    found.put(*make_pods("job", 1, CPU, role="launcher", owner=OTHER))
    assert found.settle() == []


def test_the_launcher_of_an_mpi_job_is_waited_for_while_a_worker_cannot_be_placed() -> None:
    found = scene(4, MPI_JOB)
    found.change("job-worker-0", gates=("wait",))
    found.step(after_ms=30_000)
    found.settle()
    why = found.verdict("job").why
    assert why is not None
    assert why.reason == "NotEnoughPods"


def test_the_launcher_of_an_mpi_job_is_late_after_a_silence() -> None:
    found = scene(4, MPI_JOB)
    assert found.settle() == []
    found.step(after_ms=30_000)
    (decision,) = (one for _, one in found.decisions)
    assert len(decision.bindings) == 3


def test_when_the_late_launcher_has_been_placed_the_declared_minimum_holds_for_good() -> None:
    found = scene(4, MPI_JOB)
    found.step()
    found.step(after_ms=30_000)
    ((_, decision),) = found.decisions
    found.bind(decision, phase="Running")
    # Without a label that says its role.
    found.put(*make_pods("job", 1, CPU, role="", owner=MPI_JOB))
    (decision,) = found.settle()
    found.bind(decision, phase="Running")
    found.settle()
    gang = found.state.gangs.by_id["group-job"]
    assert gang.min_member == 4
    found.remove(found.pods["job-worker-0"])
    found.settle()
    assert (gang.min_member, gang.phase) == (4, "Unknown")


def test_a_queue_does_not_name_late_roles_for_all_of_its_gangs() -> None:
    found = scene(4, OTHER, settings=(("tutti.dev/hold-seconds", "5"),), queue="lab")
    found.put(Queue(uid="lab", name="lab", dialect="volcano", resource_version=1, settings=LATE))
    assert found.settle() == []
    assert found.step(after_ms=60_000).decisions == []

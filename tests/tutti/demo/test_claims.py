"""Every claim of the demo holds for what it claims, and fails for what breaks it."""

from collections.abc import Callable

import msgspec
import pytest

from tests.tutti.demo.made_observations import (
    JOB,
    NODES,
    OTHER,
    bound,
    created,
    ended,
    running,
    seen,
)
from tutti.demo import claims
from tutti.demo.claims import GPU, Finding, Record

Check = Callable[[Record], Finding]

WHOLE = [*created(JOB, 1), *bound(JOB, 2), *running(JOB, 3)]
THEN_THE_OTHER = [
    *WHOLE,
    *created(OTHER, 4),
    *ended(JOB, 5),
    seen(JOB, "ps-0", 5.5, node="node-4", phase="Running", gone=True),
    *bound(OTHER, 6),
    *running(OTHER, 7),
]
#: Job 1 as above, job 2's ps and first worker beside it on node 4.
HALF = [
    *WHOLE,
    *created(OTHER, 4),
    seen(OTHER, "ps-0", 5, node="node-4", phase="Running"),
    seen(OTHER, "worker-0", 5, node="node-4", phase="Running"),
]

#: Job 1 runs, job 2 waits; job 1's second worker goes.
DEAD = seen(JOB, "worker-1", 3, node="node-2", phase="Running")
GOES = seen(JOB, "worker-1", 5, node="node-2", phase="Running", gone=True)
WITHOUT = [*WHOLE, *created(OTHER, 4), GOES]
AGAIN = msgspec.structs.replace(seen(JOB, "worker-1", 6, node="node-2"), uid="again")
ELSEWHERE = msgspec.structs.replace(AGAIN, node="node-4")
WAITS = msgspec.structs.replace(AGAIN, node="")
TAKEN = seen(OTHER, "worker-1", 5.5, node="node-2", phase="Running")


def taken(record: Record) -> Finding:
    return claims.takes_place(DEAD, OTHER, record)


def back(record: Record) -> Finding:
    return claims.gets_place_back(DEAD, OTHER, record)


def neither(record: Record) -> Finding:
    return claims.neither_whole([JOB, OTHER], record)


def half(record: Record) -> Finding:
    return claims.half_starts(OTHER, record)


def whole(record: Record) -> Finding:
    return claims.runs_whole(JOB, record)


def waits(record: Record) -> Finding:
    return claims.waits_whole(OTHER, record, from_s=4.1, until_s=4.9)


def after(record: Record) -> Finding:
    return claims.starts_after(OTHER, JOB, record, ends=2)


def apart(record: Record) -> Finding:
    return claims.never_together(JOB, OTHER, record)


def in_time(record: Record) -> Finding:
    return claims.never_in_part([JOB, OTHER], record, spread_ms_max=100)


def roomy(record: Record) -> Finding:
    return claims.never_over_committed(NODES, record)


@pytest.mark.parametrize(
    ("check", "record"),
    [
        pytest.param(half, HALF, id="half started"),
        pytest.param(whole, WHOLE, id="runs whole"),
        pytest.param(waits, THEN_THE_OTHER, id="waits whole"),
        pytest.param(after, THEN_THE_OTHER, id="starts after"),
        pytest.param(apart, THEN_THE_OTHER, id="never together"),
        pytest.param(in_time, THEN_THE_OTHER, id="never in part"),
        pytest.param(roomy, THEN_THE_OTHER, id="never over-committed"),
        pytest.param(taken, [*WITHOUT, TAKEN, AGAIN], id="takes the place"),
        pytest.param(back, [*WITHOUT, AGAIN, TAKEN], id="gets its place back"),
        pytest.param(neither, [*HALF, GOES, WAITS, TAKEN], id="neither is whole"),
    ],
)
def test_a_claim_holds_when_it_was_seen(check: Check, record: Record) -> None:
    claim = check(record)
    assert claim.held, claim.evidence


@pytest.mark.parametrize(
    ("check", "record", "evidence"),
    [
        pytest.param(half, [], "runs: none", id="nothing was seen"),
        pytest.param(half, [*WHOLE, *created(OTHER, 4)], "waits: 1 ps, 3 worker", id="all wait"),
        pytest.param(half, [*created(OTHER, 1), *running(OTHER, 2)], "waits: none", id="all run"),
        pytest.param(whole, [], "0 of 4", id="no pod was seen"),
        pytest.param(whole, [*created(JOB, 1), *running(JOB, 2, count=3)], "3 of 4", id="one not"),
        pytest.param(
            whole,
            [
                *running(JOB, 2, count=3),
                *ended(JOB, 3, count=1),
                seen(JOB, "worker-2", 4, node="node-1", phase="Running"),
            ],
            "3 of 4",
            id="all ran, but not at once",
        ),
        pytest.param(waits, WHOLE, "0 of 4 pods", id="its pods never existed"),
        pytest.param(
            waits,
            [*created(OTHER, 4), seen(OTHER, "ps-0", 4.5, node="node-4")],
            "bound: train2-ps-0",
            id="its ps is bound in between",
        ),
        pytest.param(
            waits,
            [seen(OTHER, "ps-0", 3.5, node="node-4"), *created(OTHER, 4)],
            "bound: train2-ps-0",
            id="its ps was bound before",
        ),
        pytest.param(
            waits,
            [*created(OTHER, 4), seen(OTHER, "worker-1", 4.5, gone=True)],
            "3 of 4 pods",
            id="a pod is deleted",
        ),
        pytest.param(waits, created(OTHER, 4)[1:], "3 of 4 pods", id="a pod is missing"),
        pytest.param(after, WHOLE, "never bound", id="it is never bound"),
        pytest.param(
            after,
            [*WHOLE, *ended(JOB, 5, count=1), *bound(OTHER, 6)],
            "1 workers",
            id="too early",
        ),
        pytest.param(apart, WHOLE, "1 of 2", id="only one is placed"),
        pytest.param(
            apart,
            [*WHOLE, *bound(OTHER, 4), *ended(JOB, 5)],
            "2 of 2 were bound whole; both held",
            id="both at once",
        ),
        pytest.param(in_time, [], "0 gangs", id="no gang was bound"),
        pytest.param(
            in_time,
            [*bound(JOB, 2), *bound(OTHER, 3, count=3)],
            "left in part: train2",
            id="one stays in part",
        ),
        pytest.param(
            in_time, [*bound(JOB, 2, step_s=0.05)], "at most 150 ms", id="too slow for a gang"
        ),
        pytest.param(taken, [*WITHOUT], "no pod went to node-2", id="the place stays empty"),
        pytest.param(
            taken, [*WITHOUT, AGAIN, TAKEN], "train-worker-1 went", id="it came back first"
        ),
        pytest.param(taken, [*WHOLE, TAKEN], "no pod went", id="no pod had died"),
        pytest.param(back, [*WITHOUT], "not bound again", id="it is not made again"),
        pytest.param(back, [*WITHOUT, TAKEN, AGAIN], "bound: train2-worker-1", id="another gang"),
        pytest.param(back, [*WITHOUT, ELSEWHERE], "came back on node-4", id="not its place"),
        pytest.param(back, [*WHOLE, GOES, AGAIN], "0 waited", id="no gang waits for it"),
        pytest.param(neither, [*HALF, GOES, TAKEN], "", id="one has no pod waiting"),
        pytest.param(roomy, created(JOB, 1), "at most 0 GPU", id="nothing was placed"),
        pytest.param(
            roomy,
            [*bound(JOB, 2), seen(OTHER, "worker-0", 3, node="node-1")],
            f"over: node-1: {GPU}",
            id="two on one GPU",
        ),
        pytest.param(
            roomy,
            [*bound(JOB, 2), seen(OTHER, "worker-0", 3, node="node-9")],
            f"over: node-9: {GPU}",
            id="a node that is none",
        ),
        pytest.param(
            roomy,
            [*bound(JOB, 2), seen(JOB, "ps-0", 3, node="node-4", phase="Failed")],
            "refused by kubelets: 1",
            id="a kubelet refuses one",
        ),
    ],
)
def test_a_claim_fails_when_it_was_not(check: Check, record: Record, evidence: str) -> None:
    claim = check(record)
    assert not claim.held
    assert evidence in claim.evidence


def test_waiting_for_no_time_proves_nothing() -> None:
    claim = claims.waits_whole(OTHER, THEN_THE_OTHER, from_s=4.5, until_s=4.5)
    assert not claim.held


@pytest.mark.parametrize(
    ("state", "sentence", "held"),
    [
        ("waiting", "train2 waits: 0/4 nodes are available", True),
        ("running", "train2 runs on 4 nodes", False),
        ("waiting", "", False),
        ("waiting", "one line\nand another", False),
    ],
)
def test_a_reason_is_one_sentence_of_something_that_waits(
    state: str, sentence: str, held: bool
) -> None:
    assert claims.gives_reason(state, sentence).held is held


def test_a_reason_is_checked_by_its_words() -> None:
    sentence = "train2 waits: 5 of 7 pods fit; 2 more nvidia.com/gpu needed"
    assert claims.gives_reason("waiting", sentence, "5 of 7 pods fit", f"2 more {GPU}").held
    assert not claims.gives_reason("waiting", sentence, "budget").held


def test_a_half_started_job_has_as_many_workers_as_the_claim_says() -> None:
    assert claims.half_starts(OTHER, HALF, workers=1).held
    assert not claims.half_starts(OTHER, HALF, workers=2).held


@pytest.mark.parametrize(
    ("minimum", "held"), [(4, True), (3, False), ("100%", False), (None, False)]
)
def test_a_budget_declares_the_gang_if_it_requires_all_pods(
    minimum: int | str | None, held: bool
) -> None:
    assert claims.declared_by_budget(JOB, minimum).held is held


@pytest.mark.parametrize(("fit", "held"), [(1, False), (2, True), (3, False), (4, False)])
def test_room_is_short_by_exactly_what_is_said(fit: int, held: bool) -> None:
    assert claims.fits_all_but(JOB, fit, short=2).held is held


NAMES = ("binder-0", "nats")


@pytest.mark.parametrize(
    ("killed", "ready", "held"),
    [
        pytest.param({"binder-0": 7, "nats": 8}, {"binder-0": 9, "nats": 0}, True, id="all back"),
        pytest.param({"binder-0": 7}, {"binder-0": 9, "nats": 0}, False, id="one was spared"),
        pytest.param({"binder-0": 7, "nats": 8}, {"nats": 0}, False, id="one is not back"),
        pytest.param({"binder-0": 7, "nats": 8}, {"binder-0": 7, "nats": 0}, False, id="immortal"),
    ],
)
def test_surviving_means_killed_and_back(
    killed: dict[str, int], ready: dict[str, int], held: bool
) -> None:
    assert claims.all_survived(killed, ready, NAMES).held is held


def test_a_scene_whose_planner_never_rests_fails() -> None:
    assert not claims.stuck("all pods run", 30).held


@pytest.mark.parametrize(
    ("message", "held"),
    [
        (
            "train-worker-1 failed: capacity for its successor is reserved on node-2 until 12:00",
            True,
        ),
        (
            "train-worker-1 failed: capacity for its successor is reserved on node-4 until 12:00",
            False,
        ),
        (
            "train-worker-2 failed: capacity for its successor is reserved on node-2 until 12:00",
            False,
        ),
        (
            "a member (role worker) was lost before the active planner took over: "
            "capacity for its successor is reserved on node-2 until 12:00",
            True,
        ),
        ("train-worker-1 failed: no node has room", False),
        ("", False),
    ],
)
def test_held_room_is_claimed_for_that_pod_on_that_node(message: str, held: bool) -> None:
    assert claims.reserves_capacity(DEAD, message).held is held

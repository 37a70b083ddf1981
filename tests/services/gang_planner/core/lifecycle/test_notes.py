"""Which notes a gang's trouble leaves in DECISIONS, with which words, and for how long."""

import msgspec

from shared.contracts import annotations
from shared.contracts.decisions import NoteClosed, NoteOpened
from shared.contracts.pending_reasons import PendingReason
from tests.services.gang_planner.core.lifecycle.gang_lives import (
    cluster,
    extra,
    fail,
    failed,
    running,
    submit,
)
from tests.services.gang_planner.core.scene import make_group


def test_the_message_of_the_api_server_is_shortened_in_a_note() -> None:
    scene = cluster()
    pods = running(scene, hold=0)
    scene.remove(scene.pods[pods[0].uid])
    scene.until_quiet()
    scene.make_again(pods)
    scene.until_quiet()
    member = failed(scene.decisions[-1][1])
    fail(scene, msgspec.structs.replace(member, message="x" * 5_000))
    scene.step()
    opened = [one for _, one in scene.records if isinstance(one, NoteOpened)]
    assert [(one.kind, len(one.message)) for one in opened] == [("backoff", 1_024)]


def test_a_refused_member_of_a_started_gang_opens_no_pause() -> None:
    scene = cluster()
    running(scene)
    extra(scene)
    scene.step()
    fail(scene, failed(scene.decisions[-1][1], result="refused"))
    scene.until_quiet()
    assert scene.notes("backoff") == []


def test_a_refused_member_is_not_avoided_for_longer_when_the_clock_is_set_back() -> None:
    scene = cluster()
    scene.now_ms = 10_000_000
    running(scene)
    pod = extra(scene)
    scene.step()
    fail(scene, failed(scene.decisions[-1][1], result="refused"))
    scene.step()
    history = scene.state.gangs.by_id["group-a"].history
    assert {uid for uid, _ in history.bad | history.failed_pods} == {pod.uid}
    scene.now_ms = 5_000_000
    scene.change("a-worker-0", waiting="x")
    scene.step()
    assert history.bad == history.failed_pods == {}


def test_a_start_deadline_that_is_switched_off_ends() -> None:
    scene = cluster()
    submit(scene, start=20)
    scene.step()
    scene.carry_out()
    scene.until_quiet()
    assert len(scene.notes("start")) == 1
    scene.put(make_group("a", 2, resource_version=2))
    scene.until_quiet()
    closed = [one for _, one in scene.records if isinstance(one, NoteClosed)]
    assert [(one.kind, one.reason) for one in closed] == [("start", "Off")]


def test_a_placement_deadline_ends_with_the_first_decision() -> None:
    scene = cluster()
    submit(scene)
    deadline = ((annotations.PLACEMENT_DEADLINE_SECONDS, "60"),)
    scene.put(make_group("a", 2, resource_version=2, settings=deadline))
    scene.step()
    assert len(scene.decisions) == 1
    scene.until_quiet(within_ms=70_000)
    reasons = {one.why.reason for one in scene.published if one.why is not None}
    assert PendingReason.PLACEMENT_DEADLINE not in reasons

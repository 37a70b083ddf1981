import msgspec

from services.controller.core.events import (
    ControllerEvent,
    EventIntent,
    evicted_event,
    group_event,
    pod_event,
)
from shared.contracts.verdicts import Condition, PodRef, Verdict
from shared.kube.resources import PODGROUPS_VOLCANO
from tests.services.controller.core.samples import START_MS, make_verdict

VERDICT = make_verdict()


def _group_event(verdict: Verdict, reason: str, message: str = "", now_ms: int = 0) -> EventIntent:
    event = ControllerEvent("Normal", reason, message)
    return group_event(verdict, PODGROUPS_VOLCANO, event, now_ms=now_ms)


def test_the_same_event_has_the_same_name_at_any_time() -> None:
    events = [
        _group_event(VERDICT, "Scheduled", words, now_ms)
        for words, now_ms in (("a", START_MS), ("b", START_MS + 90_000))
    ]
    assert events[0].name == events[1].name
    assert events[0].name.startswith("job.")


def test_another_reason_or_object_is_another_event() -> None:
    names = {
        _group_event(verdict, reason).name
        for verdict in (VERDICT, make_verdict(uid="re-created"))
        for reason in ("Scheduled", "Unschedulable")
    }
    assert len(names) == 4


def test_a_name_and_a_message_fit_what_the_api_server_takes() -> None:
    verdict = make_verdict(name="j" * 253)
    event = _group_event(verdict, "Unschedulable", "w" * 9_000)
    assert len(event.name) <= 253
    assert 1_000 < len(event.message.encode()) <= 1_024
    assert event.message.endswith("… (8,003 more characters)")


def test_a_pod_event_points_to_the_pod_and_is_sent_once() -> None:
    event = pod_event(VERDICT, PodRef(uid="u", name="w-0", node="n-0"), START_MS)
    assert event.body["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "team",
        "name": "w-0",
        "uid": "u",
    }
    assert event.body["firstTimestamp"] == "2023-11-14T22:13:20Z"
    assert not event.repeats


def test_an_evicted_pods_event_has_volcanos_words_and_names_the_preemptor() -> None:
    said = Condition(
        type="Evicted",
        status="True",
        reason="Reclaimed",
        message="1 of its pods was reclaimed for gang team/late",
        since_ms=START_MS,
    )
    verdict = msgspec.structs.replace(VERDICT, conditions=(said,))
    event = evicted_event(verdict, PodRef(uid="u", name="w-0", node="n-0"), START_MS)
    assert (event.body["type"], event.body["reason"]) == ("Warning", "Evict")
    assert event.message.startswith("Pod is evicted, because of reclaim (gang ")
    assert "for gang team/late" in event.message
    assert not event.repeats

import msgspec

from services.binder.core.outcome import (
    MESSAGE_CHARS_MAX,
    Finding,
    Instants,
    Sender,
    outcome_of,
    refusal_of,
)
from services.gang_planner.core.state.decision_sizes import ENTRIES_BYTES_MAX, binding_bytes
from shared.contracts.codec import encode
from shared.contracts.subjects import MESSAGE_BYTES_MAX
from tests.services.binder.core.samples import make_decision, make_release

SENDER = Sender(binder="binder-0", decision_seq=17, delivered=1)


def test_the_outcome_of_the_largest_gang_fits_a_message_even_with_a_page_for_each_member() -> None:
    decision = make_decision(10_000)
    page = Finding("refused", 403, "Forbidden", "webhook says no: " + "x" * 5_000)
    outcome = outcome_of(
        decision,
        SENDER,
        Instants(),
        findings=[(binding.uid, binding.node, page) for binding in decision.bindings],
    )
    assert len(encode(outcome)) < max(MESSAGE_BYTES_MAX, len(encode(decision)))
    assert len(outcome.members) == 10_000
    assert len(outcome.members[0].message) == MESSAGE_CHARS_MAX
    assert outcome.members[-1].message == ""
    assert outcome.members[-1].code == 403


def test_the_outcome_of_as_many_short_names_as_a_decision_holds_fits_with_texts() -> None:
    """An entry with its result is longer than a binding with short names."""
    decision = make_decision(1)
    (binding,) = decision.bindings
    short = msgspec.structs.replace(binding, uid="u" * 36, namespace="a", name="b", node="n")
    count = ENTRIES_BYTES_MAX // binding_bytes([short])
    page = Finding("unprepared", 403, "Forbidden" * 1_000, "x" * 5_000, late=True)
    findings = [(short.uid, short.node, page)] * count
    outcome = outcome_of(decision, SENDER, Instants(), findings=findings)
    assert len(encode(outcome)) <= MESSAGE_BYTES_MAX - 1024
    assert len(outcome.members) == count
    assert outcome.members[0].message


def test_a_decision_that_is_not_carried_out_skips_every_member() -> None:
    outcome = refusal_of(make_decision(2), SENDER, reason="StaleEpoch", now_ms=5)
    assert outcome.reason == "StaleEpoch"
    assert [member.result for member in outcome.members] == ["skipped", "skipped"]


def test_a_release_that_is_not_carried_out_skips_every_victim() -> None:
    outcome = refusal_of(make_release(2), SENDER, reason="StaleEpoch", now_ms=5)
    assert (outcome.reason, outcome.evicted) == ("StaleEpoch", 0)
    assert [(member.uid, member.result) for member in outcome.members] == [
        ("u-0", "skipped"),
        ("u-1", "skipped"),
    ]

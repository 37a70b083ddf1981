"""The fence's protocol, every event in every state, and a search through all short histories of a
server that loses, delays and duplicates, with a second writer: never two writers, never a record
twice, never one lost that was reported as stored.
"""

import itertools

import pytest

from shared.bus.fence_machine import (
    Action,
    Done,
    FenceMachine,
    GiveUp,
    NotStored,
    Overtaken,
    Read,
    Send,
)
from shared.model.invariants import InvariantViolation


def test_an_acknowledged_append_is_applied_and_the_next_stands_behind_it() -> None:
    machine = FenceMachine(7)
    assert machine.begin("a") == Send(7, 1)
    assert machine.on_ack(8) == Done(8, 8)
    assert machine.last_applied == 8
    assert machine.begin("b") == Send(8, 1)


def test_a_batch_is_acknowledged_by_its_last_sequence() -> None:
    machine = FenceMachine(7)
    assert machine.begin("a", 3) == Send(7, 1)
    assert machine.on_ack(10) == Done(8, 10)
    assert machine.last_applied == 10


def test_a_refused_first_send_means_another_writer_and_is_final() -> None:
    machine = FenceMachine(7)
    machine.begin("a")
    assert isinstance(machine.on_refused("wrong last sequence: 8"), Overtaken)
    assert isinstance(machine.begin("b"), Overtaken)


def test_a_refused_repetition_may_have_stumbled_over_its_own_first_copy() -> None:
    machine = FenceMachine(7)
    machine.begin("a")
    assert machine.on_no_answer() == Read(8, 2)
    assert machine.on_read_nothing(1, 7) == Send(7, 3)
    assert machine.on_refused("wrong last sequence: 8") == Read(8, 4)
    assert machine.on_read("a") == Done(8, 8)


def test_a_lost_acknowledgement_is_found_in_the_stream() -> None:
    machine = FenceMachine(7)
    machine.begin("a", 5)
    machine.on_no_answer()
    assert machine.on_read("a") == Done(8, 12)


@pytest.mark.parametrize("found", ["b", ""])
def test_a_foreign_record_where_ours_should_be_means_another_writer(found: str) -> None:
    machine = FenceMachine(7)
    machine.begin("a")
    machine.on_no_answer()
    assert isinstance(machine.on_read(found), Overtaken)


@pytest.mark.parametrize(
    ("first_seq", "last_seq"),
    [
        pytest.param(1, 6, id="it ends before what we have applied"),
        pytest.param(0, 0, id="it is empty"),
        pytest.param(9, 20, id="what stood behind us has aged out"),
    ],
)
def test_a_stream_that_is_not_the_one_we_knew_is_not_written_to(
    first_seq: int, last_seq: int
) -> None:
    machine = FenceMachine(7)
    machine.begin("a")
    machine.on_no_answer()
    assert isinstance(machine.on_read_nothing(first_seq, last_seq), Overtaken)


def test_a_record_that_arrives_between_the_two_questions_is_looked_at_again() -> None:
    machine = FenceMachine(7)
    machine.begin("a")
    machine.on_no_answer()
    assert machine.on_read_nothing(1, 8) == Read(8, 3)


def test_a_rejected_first_send_leaves_nothing_behind_and_may_be_followed_by_another() -> None:
    machine = FenceMachine(7)
    machine.begin("a")
    assert machine.on_rejected(10047, "no space") == NotStored(10047, "no space")
    assert machine.unresolved == ""
    assert machine.begin("b") == Send(7, 1)


def test_a_rejected_repetition_does_not_prove_that_the_first_copy_was_not_stored() -> None:
    machine = FenceMachine(7)
    machine.begin("a")
    machine.on_no_answer()
    machine.on_read_nothing(1, 7)
    assert machine.on_rejected(10047, "no space") == Read(8, 4)


def test_after_giving_up_the_same_append_goes_on_with_a_look() -> None:
    machine = FenceMachine(7, attempts_max=2)
    machine.begin("a")
    assert machine.on_no_answer() == Read(8, 2)
    assert isinstance(machine.on_read_failed(), GiveUp)
    assert machine.unresolved == "a"
    assert machine.begin("a") == Read(8, 1)


def test_another_append_while_one_is_unresolved_breaks_an_invariant() -> None:
    machine = FenceMachine(7, attempts_max=1)
    machine.begin("a")
    machine.on_no_answer()
    with pytest.raises(InvariantViolation):
        machine.begin("b")


def test_what_is_read_while_an_append_is_under_way_does_not_move_its_condition() -> None:
    machine = FenceMachine(7)
    machine.begin("a")
    machine.applied(8)
    machine.on_no_answer()
    assert machine.on_read_nothing(1, 7) == Send(7, 3)
    assert machine.on_ack(8) == Done(8, 8)


class Server:
    """A stream that compares the condition and stores; a send may arrive late or twice."""

    def __init__(self) -> None:
        self.records: list[str] = []
        self.delayed: list[tuple[int, str]] = []

    def arrive(self, expected: int, record: str) -> int | None:
        if len(self.records) != expected:
            return None
        self.records.append(record)
        return len(self.records)


FATES = ("answered", "answer lost", "lost", "delayed")


def run_history(
    fates: tuple[str, ...], other_writes_at: int | None
) -> tuple[Server, list[str], bool]:
    """Append "a" then "b"; `fates` is consumed by each send and read; another process writes before
    action number `other_writes_at`. Returns the server, the records reported as stored, and whether
    we stepped down.
    """
    server, machine = Server(), FenceMachine(0, attempts_max=6)
    reported: list[str] = []
    fate = iter(fates)
    actions = itertools.count()
    for record in ("a", "b"):
        action = machine.begin(record)
        while isinstance(action, Send | Read):
            if next(actions) == other_writes_at:
                server.records.append("other")
            happens = next(fate, "answered")
            if isinstance(action, Send):
                action = _send(server, machine, action.expected, record, happens)
            else:
                action = _read(server, machine, action.seq, happens)
        if isinstance(action, Overtaken):
            return server, reported, True
        if not isinstance(action, Done):
            break
        reported.append(record)
    for late in server.delayed:
        server.arrive(*late)
    return server, reported, False


def _read(server: Server, machine: FenceMachine, seq: int, happens: str) -> Action:
    if happens in {"lost", "answer lost"}:
        return machine.on_read_failed()
    if happens == "delayed" and server.delayed:
        server.arrive(*server.delayed.pop())
    if seq <= len(server.records):
        found = server.records[seq - 1]
        return machine.on_read(found, is_foreign=found == "foreign")
    return machine.on_read_nothing(1, len(server.records))


def _send(
    server: Server, machine: FenceMachine, expected: int, record: str, happens: str
) -> Action:
    if happens == "lost":
        return machine.on_no_answer()
    if happens == "delayed":
        server.delayed.append((expected, record))
        return machine.on_no_answer()
    stored = server.arrive(expected, record)
    if happens == "answer lost":
        return machine.on_no_answer()
    return machine.on_ack(stored) if stored else machine.on_refused("wrong last sequence")


def test_no_short_history_loses_doubles_or_shares_the_log() -> None:
    histories = 0
    for fates in itertools.product(FATES, repeat=6):
        for other_writes_at in (None, 0, 1, 2, 3, 4):
            server, reported, stepped_down = run_history(fates, other_writes_at)
            ours = [record for record in server.records if record != "other"]
            assert len(ours) == len(set(ours)), (fates, other_writes_at, server.records)
            assert ours[: len(reported)] == reported, (fates, other_writes_at, server.records)
            if "other" in server.records:
                position = server.records.index("other")
                assert server.records[position + 1 :] == [], "we wrote behind a record we never saw"
            if stepped_down:
                assert "other" in server.records, (fates, other_writes_at)
            histories += 1
    assert histories == 6 * 4**6


def overlooking(last_applied: int) -> FenceMachine:
    machine = FenceMachine(last_applied)
    machine.overlooks = True
    return machine


def test_a_foreign_message_is_stepped_over_and_the_record_sent_again_behind_it() -> None:
    machine = overlooking(7)
    machine.begin("a")
    assert machine.on_refused("wrong last sequence") == Read(8, 2)
    assert machine.on_read("", is_foreign=True) == Send(8, 3)
    assert machine.on_ack(9) == Done(9, 9)
    assert machine.last_applied == 9


def test_behind_a_foreign_message_another_writer_is_found() -> None:
    machine = overlooking(7)
    machine.begin("a")
    machine.on_refused("wrong last sequence")
    machine.on_read("", is_foreign=True)
    assert machine.on_refused("wrong last sequence") == Read(9, 4)
    assert isinstance(machine.on_read("theirs"), Overtaken)


def test_a_log_that_overlooks_nothing_takes_a_foreign_message_for_another_writer() -> None:
    machine = FenceMachine(7)
    machine.begin("a")
    machine.on_no_answer()
    assert isinstance(machine.on_read("", is_foreign=True), Overtaken)


def test_what_was_refused_behind_a_record_that_is_gone_by_now_was_overtaken() -> None:
    machine = overlooking(7)
    machine.begin("a")
    machine.on_refused("wrong last sequence")
    assert isinstance(machine.on_read_nothing(1, 9), Overtaken)


def test_more_strays_than_attempts_do_not_use_these_up() -> None:
    machine = FenceMachine(0, attempts_max=2)
    machine.overlooks = True
    action = machine.begin("a")
    seen = []
    for _ in range(50):
        assert isinstance(action, Send)
        seen.append(action.attempt)
        assert isinstance(machine.on_refused("wrong last sequence"), Read)
        action = machine.on_read("", is_foreign=True)
    assert len(set(seen)) == 50
    assert isinstance(action, Send)
    assert machine.on_ack(action.expected + 1) == Done(51, 51)


def test_among_strays_no_short_history_loses_doubles_or_shares_the_log() -> None:
    """As above, with foreign messages stored before some actions: only they may stand between."""
    histories = 0
    for fates in itertools.product(FATES, repeat=4):
        for other_writes_at in (None, 0, 1, 2, 3):
            for foreign_at in itertools.combinations(range(5), 2):
                records, reported, stepped_down = strewn_history(fates, other_writes_at, foreign_at)
                case = (fates, other_writes_at, foreign_at, records)
                ours = [record for record in records if record in {"a", "b"}]
                assert len(ours) == len(set(ours)), case
                assert ours[: len(reported)] == reported, case
                behind = records[records.index("other") :] if "other" in records else []
                assert not {"a", "b"} & set(behind), case
                assert not stepped_down or "other" in records, case
                histories += 1
    assert histories == 4**4 * 5 * 10


def strewn_history(
    fates: tuple[str, ...], other_writes_at: int | None, foreign_at: tuple[int, ...]
) -> tuple[list[str], list[str], bool]:
    server, machine = Server(), FenceMachine(0, attempts_max=6)
    machine.overlooks = True
    reported: list[str] = []
    fate = iter(fates)
    actions = itertools.count()
    for record in ("a", "b"):
        action = machine.begin(record)
        while isinstance(action, Send | Read):
            number = next(actions)
            if number in foreign_at:
                server.records.append("foreign")
            if number == other_writes_at:
                server.records.append("other")
            happens = next(fate, "answered")
            if isinstance(action, Send):
                action = _send(server, machine, action.expected, record, happens)
            else:
                action = _read(server, machine, action.seq, happens)
        if isinstance(action, Overtaken):
            return server.records, reported, True
        if not isinstance(action, Done):
            break
        reported.append(record)
    for late in server.delayed:
        server.arrive(*late)
    return server.records, reported, False

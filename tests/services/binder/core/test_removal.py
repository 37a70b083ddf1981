"""Removing pods: the protocol step by step, then under any order of answers and any crash."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.binder.core.answers import Answer, PodView
from services.binder.core.commands import (
    Command,
    Delete,
    Finish,
    Forget,
    LookUp,
    Mark,
    Read,
    Request,
)
from services.binder.core.outcome import Sender
from services.binder.core.removal import Removal
from shared.contracts.outcomes import Member, Outcome
from shared.model.invariants import InvariantViolation
from tests.services.binder.core.samples import BUSY, LIMITS, SILENT, make_release, make_removal
from tests.support.golden import Golden

DONE = Answer(200)
OTHER = Answer(409, "Conflict", "the UID in the precondition does not match")
IMMUTABLE = Answer(422, "Invalid", "metadata.uid: field is immutable")
FORBIDDEN = Answer(403, "Forbidden", "policy says no")


def outcome_in(commands: tuple[Command, ...]) -> Outcome:
    (command,) = commands
    assert isinstance(command, Finish)
    return command.outcome


def exhaust(machine: Removal, index: int, answer: Answer) -> tuple[Command, ...]:
    """Answer victim `index` alike for as long as the machine repeats the same request."""
    commands = machine.answered(index, answer, 0)
    kind = type(commands[0])
    while isinstance(commands[0], kind) and not isinstance(commands[0], Read | Finish):
        commands = machine.answered(index, answer, 0)
    return commands


def marked(victims: int = 1) -> Removal:
    """A machine whose victims all wait for the answer to their DELETE."""
    machine = make_removal(victims)
    machine.start(0)
    for index in range(victims):
        assert machine.answered(index, DONE, 0) == (Delete(index),)
    return machine


def test_each_victim_is_marked_and_then_deleted_without_waiting_for_the_others() -> None:
    machine = make_removal(2)
    assert machine.start(1_000) == (Mark(0), Mark(1))
    assert machine.answered(1, DONE, 1_001) == (Delete(1),)
    assert machine.answered(1, DONE, 1_002) == ()
    assert machine.answered(0, DONE, 1_003) == (Delete(0),)
    assert outcome_in(machine.answered(0, DONE, 1_004)) == Outcome(
        gang_id="g",
        decision_seq=17,
        epoch=2,
        binder="binder-0",
        delivered=1,
        evicted=2,
        received_ms=1_000,
    )


@pytest.mark.parametrize("answer", [DONE, Answer(202), Answer(404, "NotFound")])
def test_a_victim_that_is_deleted_being_deleted_or_gone_is_removed(answer: Answer) -> None:
    outcome = outcome_in(marked().answered(0, answer, 1))
    assert (outcome.evicted, outcome.members) == (1, ())


def test_a_victim_that_is_gone_before_it_is_marked_is_removed() -> None:
    machine = make_removal(1)
    machine.start(0)
    assert outcome_in(machine.answered(0, Answer(404, "NotFound"), 1)).evicted == 1


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(None, id="gone"),
        pytest.param(PodView("another"), id="made again under its name"),
        pytest.param(PodView("u-0", "n", deleting=True), id="on its way"),
        pytest.param(PodView("u-0", "n", succeeded=True), id="succeeded"),
    ],
)
def test_a_conflict_is_read_and_what_is_leaving_is_removed(view: PodView | None) -> None:
    for machine in (make_removal(1), marked()):
        if machine.phase == "new":
            machine.start(0)
        assert machine.answered(0, OTHER, 1) == (Read(0),)
        outcome = outcome_in(machine.read_back(0, view, 2))
        assert (outcome.evicted, outcome.members) == (1, ())


def test_a_victim_that_has_succeeded_meanwhile_is_left_and_counts_as_removed() -> None:
    machine = make_removal(2)
    machine.start(0)
    assert machine.answered(0, Answer(200, succeeded=True), 1) == ()
    assert machine.answered(1, DONE, 1) == (Delete(1),)
    outcome = outcome_in(machine.answered(1, DONE, 2))
    assert (outcome.evicted, outcome.members, outcome.notes) == (2, (), ())


def test_a_conflict_with_a_pod_that_is_still_ours_is_tried_again() -> None:
    machine = marked()
    machine.answered(0, OTHER, 1)
    (again,) = machine.read_back(0, PodView("u-0", "n"), 2)
    assert isinstance(again, Delete)
    assert again.delay_ms > 0


def test_a_refused_delete_is_reported_in_the_servers_words() -> None:
    machine = marked(2)
    machine.answered(0, FORBIDDEN, 1)
    outcome = outcome_in(machine.answered(1, DONE, 2))
    assert (outcome.evicted, outcome.reason) == (1, "")
    assert outcome.members == (
        Member(
            uid="u-0",
            node="",
            result="refused",
            code=403,
            reason="Forbidden",
            message="policy says no",
        ),
    )


def test_a_refused_mark_keeps_no_pod_alive_and_is_noted(golden: Golden) -> None:
    machine = make_removal(1)
    machine.start(0)
    assert machine.answered(0, FORBIDDEN, 1) == (Delete(0),)
    outcome = outcome_in(machine.answered(0, DONE, 2))
    assert outcome.evicted == 1
    golden(*outcome.notes)


def test_a_mark_that_is_invalid_may_have_met_another_pod(golden: Golden) -> None:
    machine = make_removal(2)
    machine.start(0)
    assert machine.answered(0, IMMUTABLE, 1) == (Read(0),)
    assert machine.answered(1, IMMUTABLE, 1) == (Read(1),)
    assert machine.read_back(0, PodView("another"), 2) == ()
    assert machine.read_back(1, PodView("u-1", "n"), 2) == (Delete(1),)
    outcome = outcome_in(machine.answered(1, DONE, 3))
    assert outcome.evicted == 2
    golden(*outcome.notes)


def test_a_mark_that_is_never_taken_keeps_no_pod_alive_either(golden: Golden) -> None:
    machine = make_removal(1)
    machine.start(0)
    assert exhaust(machine, 0, Answer(500, "InternalError", "webhook down")) == (Read(0),)
    assert machine.read_back(0, PodView("u-0", "n"), 1) == (Delete(0),)
    outcome = outcome_in(machine.answered(0, DONE, 2))
    golden(*outcome.notes)


def test_a_busy_server_is_asked_again_not_before_it_said() -> None:
    machine = marked()
    (again,) = machine.answered(0, Answer(429, "TooManyRequests", "", 3_000), 1)
    assert isinstance(again, Delete)
    assert again.delay_ms >= 3_000


def test_the_delete_has_all_its_tries_however_many_the_mark_took() -> None:
    machine = make_removal(1)
    machine.start(0)
    for _ in range(LIMITS.posts_max - 1):
        (again,) = machine.answered(0, BUSY, 0)
        assert isinstance(again, Mark)
    machine.answered(0, DONE, 0)
    for _ in range(LIMITS.posts_max - 1):
        (again,) = machine.answered(0, BUSY, 0)
        assert isinstance(again, Delete)
    assert machine.answered(0, BUSY, 0) == (Read(0),)


def test_silence_ends_as_unknown_and_only_when_a_read_shows_the_pod_alive() -> None:
    machine = marked(2)
    assert exhaust(machine, 0, SILENT) == (Read(0),)
    assert exhaust(machine, 1, SILENT) == (Read(1),)
    machine.read_back(0, PodView("u-0", "n", deleting=True), 3)
    outcome = outcome_in(machine.read_back(1, PodView("u-1", "n"), 3))
    assert outcome.evicted == 1
    assert [(member.uid, member.result) for member in outcome.members] == [("u-1", "unknown")]


def test_reads_that_fail_too_are_bounded() -> None:
    machine = marked()
    commands = exhaust(machine, 0, SILENT)
    reads = 0
    while isinstance(commands[0], Read):
        reads += 1
        commands = machine.read_back(0, Answer(503), 1)
    assert reads == LIMITS.reads_max
    assert outcome_in(commands).members[0].result == "unknown"


def test_a_redelivery_first_asks_for_the_outcome() -> None:
    finished = make_removal(2, delivered=2)
    assert finished.start(0) == (LookUp(),)
    assert finished.looked_up(outcome_exists=True) == (Forget(),)
    open_still = make_removal(2, delivered=2)
    open_still.start(0)
    assert open_still.looked_up(outcome_exists=False) == (Mark(0), Mark(1))


def test_what_was_delivered_too_often_is_only_read_back() -> None:
    machine = make_removal(3, delivered=LIMITS.deliveries_max + 1)
    machine.start(0)
    assert machine.looked_up(outcome_exists=False) == (Read(0), Read(1), Read(2))
    machine.read_back(0, None, 1)
    machine.read_back(1, PodView("other"), 1)
    outcome = outcome_in(machine.read_back(2, PodView("u-2", "n"), 1))
    assert (outcome.reason, outcome.evicted) == ("BinderGaveUp", 2)
    assert [(member.uid, member.result) for member in outcome.members] == [("u-2", "unknown")]


def test_a_release_without_victims_has_an_outcome_too() -> None:
    assert outcome_in(make_removal(0).start(5)).evicted == 0


def test_an_answer_to_no_request_is_a_bug_and_loud() -> None:
    machine = marked()
    machine.answered(0, DONE, 1)
    with pytest.raises(InvariantViolation, match="answer to no request"):
        machine.answered(0, DONE, 2)


class World:
    """An API server with the pods w-0, w-1, … some of which another client changes in between."""

    def __init__(self, victims: int, random: Random) -> None:
        self.random = random
        self.uids: dict[int, str | None] = {index: f"u-{index}" for index in range(victims)}
        self.marked: set[int] = set()
        #: UIDs of the pods that our requests deleted.
        self.deleted: list[str] = []
        self.unmarked: list[str] = []

    def disturb(self) -> None:
        """Delete a pod, or put another one in its place."""
        index = self.random.randrange(len(self.uids))
        self.uids[index] = self.random.choice([None, f"other-{self.random.randrange(9)}"])

    def carry_out(self, request: Request) -> Answer | PodView | None:
        """Do as a real server would."""
        index, uid = request.index, self.uids[request.index]
        if isinstance(request, Read):
            return None if uid is None else PodView(uid, "n")
        if uid is None:
            return Answer(404, "NotFound")
        if uid != f"u-{index}":
            return IMMUTABLE if isinstance(request, Mark) else OTHER
        if isinstance(request, Mark):
            self.marked.add(index)
        else:
            assert isinstance(request, Delete)
            if index not in self.marked:
                self.unmarked.append(uid)
            self.deleted.append(uid)
            self.uids[index] = None
        return DONE

    def answer(self, request: Request, *, calm: bool) -> Answer | PodView | None:
        """Answer, unless it goes wrong: not done, or done and the answer lost."""
        chance = 1.0 if calm else self.random.random()
        if chance < 0.2:
            return self.random.choice([BUSY, SILENT, Answer(503, "ServiceUnavailable")])
        answer = self.carry_out(request)
        return SILENT if chance < 0.4 else answer


class Delivery:
    """One delivery of the release, on its way through a binder."""

    def __init__(self, world: World, delivered: int) -> None:
        self.world = world
        self.machine = Removal(make_release(len(world.uids)), Sender("b", 17, delivered), LIMITS)
        self.waiting: list[Request] = []
        self.outcome: Outcome | None = None
        commands = self.machine.start(0)
        if delivered > 1:
            commands = self.machine.looked_up(outcome_exists=False)
        self.do(commands)

    def do(self, commands: tuple[Command, ...]) -> None:
        for command in commands:
            if isinstance(command, Finish):
                self.outcome = command.outcome
            else:
                assert isinstance(command, Mark | Delete | Read)
                self.waiting.append(command)

    def step(self, *, calm: bool) -> None:
        """Answer one of the requests that are in flight."""
        world = self.world
        request = self.waiting.pop(world.random.randrange(len(self.waiting)))
        if not calm and world.random.random() < 0.1:
            world.disturb()
        answer = world.answer(request, calm=calm)
        if isinstance(request, Read):
            self.do(self.machine.read_back(request.index, answer, 0))
        else:
            assert isinstance(answer, Answer)
            self.do(self.machine.answered(request.index, answer, 0))

    def die(self) -> None:
        """Leave what was handed to the kernel: it may still arrive."""
        for request in self.waiting:
            if self.world.random.random() < 0.5 and not isinstance(request, Read):
                self.world.carry_out(request)


def carried_out(world: World, delivered: int, steps: int, *, calm: bool) -> Outcome | None:
    """Take one delivery as far as its outcome; None: the binder is killed after `steps`."""
    delivery = Delivery(world, delivered)
    for _ in range(steps):
        if delivery.outcome is not None:
            return delivery.outcome
        delivery.step(calm=calm)
    delivery.die()
    return None


@given(
    victims=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
    crashes=st.lists(st.integers(0, 12), max_size=4),
)
def test_crashes_and_redeliveries_anywhere_end_with_exactly_the_victims_removed(
    victims: int, seed: int, crashes: list[int]
) -> None:
    world = World(victims, Random(seed))
    delivered = 1
    for steps in crashes:
        if carried_out(world, delivered, steps, calm=False) is not None:
            break
        delivered += 1
    outcome = carried_out(world, delivered, 10_000, calm=True)
    assert outcome is not None
    assert (outcome.evicted, outcome.members, outcome.reason) == (victims, (), "")
    assert all(uid is None or uid.startswith("other") for uid in world.uids.values())
    assert all(uid.startswith("u-") for uid in world.deleted), "a stranger was deleted"
    assert len(set(world.deleted)) == len(world.deleted)


@given(victims=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_an_outcome_never_claims_more_than_is_true(victims: int, seed: int) -> None:
    world = World(victims, Random(seed))
    outcome = carried_out(world, 1, 10_000, calm=False)
    assert outcome is not None
    alive = {uid for uid in world.uids.values() if uid is not None and uid.startswith("u-")}
    assert alive <= {member.uid for member in outcome.members}
    assert outcome.evicted + len(outcome.members) == victims
    assert outcome.notes or not world.unmarked, "a pod went without a note of the reason"

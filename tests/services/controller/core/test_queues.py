"""Queues open and close as their owners and parents say."""

import msgspec
import pytest

from services.controller.core.queues import Change, plan
from shared.kinds.command import Command
from shared.kinds.metadata import Metadata
from shared.kinds.queue import CLOSED_BY_PARENT, Queue, QueueSpec, QueueStatus
from shared.kube.objects import OwnerReference


def queue(
    name: str,
    state: str = "Open",
    parent: str = "root",
    mark: str | None = None,
    allocated: dict[str, str] | None = None,
) -> Queue:
    marks = {} if mark is None else {CLOSED_BY_PARENT: mark}
    status = {"state": state, "allocated": {} if allocated is None else allocated}
    return Queue(
        metadata=Metadata(name=name, uid=f"u-{name}", annotations=marks),
        spec=QueueSpec(parent=parent),
        status=msgspec.convert(status, QueueStatus),
    )


ROOT = queue("root", parent="")


def order(action: str, name: str, uid: str | None = None) -> Command:
    target = OwnerReference(kind="Queue", name=name, uid=f"u-{name}" if uid is None else uid)
    return Command(action=action, target=target)


def settled(
    queues: list[Queue], *orders: Command, groups: dict[str, int] | None = None
) -> dict[str, tuple[str, str | None]]:
    """State and mark of every queue once the plan is carried out; nothing is left to do then."""
    table = {seen.metadata.name: seen for seen in [ROOT, *queues]}
    for change in plan(table.values(), groups or {}, orders, None):
        table[change.name] = carried_out(table[change.name], change)
    assert plan(table.values(), groups or {}, [], None) == []
    return {
        name: (seen.status.state, seen.metadata.annotations.get(CLOSED_BY_PARENT))
        for name, seen in table.items()
        if name != "root"
    }


def carried_out(seen: Queue, change: Change) -> Queue:
    allocated = seen.status.allocated if change.allocated is None else change.allocated
    return queue(
        change.name,
        seen.status.state if change.state is None else change.state,
        seen.spec.parent if change.parent is None else change.parent,
        seen.metadata.annotations.get(CLOSED_BY_PARENT) if change.mark is None else change.mark,
        {name: str(amount) for name, amount in (allocated or {}).items()},
    )


def test_a_new_queue_is_opened_and_hung_below_root() -> None:
    (change,) = plan([ROOT, Queue(metadata=Metadata(name="q", uid="1"))], {}, [], None)

    assert change == Change(
        name="q", uid="1", parent="root", state="Open", allocated={"cpu": "0", "memory": "0"}
    )


def test_a_queue_closes_when_its_last_unfinished_group_has_gone() -> None:
    closing = settled([queue("q")], order("CloseQueue", "q"), groups={"q": 1})
    closed = settled([queue("q", "Closing")])

    assert closing == {"q": ("Closing", None)}
    assert closed == {"q": ("Closed", None)}


def test_a_closed_queue_opens_and_says_that_no_parent_keeps_it() -> None:
    assert settled([queue("q", "Closed")], order("OpenQueue", "q")) == {"q": ("Open", "false")}


def test_all_below_a_closed_parent_close_with_it_and_open_with_it() -> None:
    tree = [queue("top"), queue("kid", parent="top"), queue("grandkid", parent="kid")]

    closed = settled(tree, order("CloseQueue", "top"))
    both = settled(tree, order("CloseQueue", "top"), order("OpenQueue", "top"))

    assert closed == {
        "top": ("Closed", None),
        "kid": ("Closed", "true"),
        "grandkid": ("Closed", "true"),
    }
    assert both == dict.fromkeys(("top", "kid", "grandkid"), ("Open", "false"))


def test_a_child_that_was_closed_by_itself_stays_closed_when_its_parent_opens() -> None:
    tree = [queue("top", "Closed"), queue("kid", "Closed", parent="top")]

    assert settled(tree, order("OpenQueue", "top"))["kid"] == ("Closed", None)


def test_opening_a_child_below_a_closed_parent_comes_true_when_the_parent_opens() -> None:
    tree = [queue("top", "Closed"), queue("kid", "Closed", parent="top")]

    refused = settled(tree, order("OpenQueue", "kid"))
    opened = settled(tree, order("OpenQueue", "kid"), order("OpenQueue", "top"))

    assert refused["kid"] == ("Closed", "true")
    assert opened["kid"] == ("Open", "false")


def test_closing_a_child_that_its_parent_closed_keeps_it_closed_later() -> None:
    tree = [queue("top", "Closed"), queue("kid", "Closed", parent="top", mark="true")]

    orders = order("CloseQueue", "kid"), order("OpenQueue", "top")

    assert settled(tree, *orders)["kid"] == ("Closed", "false")


def test_root_is_never_closed() -> None:
    assert plan([ROOT], {}, [order("CloseQueue", "root")], None) == []


def test_a_command_for_a_queue_of_the_past_is_not_obeyed() -> None:
    assert settled([queue("q")], order("CloseQueue", "q", uid="another")) == {"q": ("Open", None)}


def test_an_opening_that_was_killed_between_its_two_writes_is_completed() -> None:
    tree = [queue("top"), queue("kid", "Open", parent="top", mark="true")]

    assert settled(tree)["kid"] == ("Open", "false")


@pytest.mark.parametrize("parents", [("b", "a"), ("a", "a"), ("gone", "root")])
def test_queues_whose_parents_lead_nowhere_follow_no_queue(parents: tuple[str, str]) -> None:
    tree = [queue("a", parent=parents[0]), queue("b", parent=parents[1])]

    assert settled(tree, order("CloseQueue", "a"))["a"][0] == "Closed"


def test_only_the_closing_itself_is_worth_an_event() -> None:
    (closing,) = plan([queue("q")], {"q": 1}, [order("CloseQueue", "q")], {"q": {}})
    (closed,) = plan([queue("q", "Closing")], {}, [], {"q": {}})

    assert (closing.closes, closed.closes) == (True, False)


def test_what_groups_hold_is_written_when_it_changed_and_kept_while_unknown() -> None:
    seen = queue("q", allocated={"cpu": "2", "memory": "0"})

    (change,) = plan([seen], {}, [], {"q": {"cpu": "1", "pods": "1"}})

    assert change.allocated == {"cpu": "1", "memory": "0", "pods": "1"}
    assert plan([seen], {}, [], {"q": {"cpu": "2"}}) == []
    assert plan([seen], {}, [], None) == []

"""What members declare must follow from the members that exist, whatever came before."""

import random
from typing import Any

import pytest

from shared.model.minimums import Declared, MemberDeclarations, binding_role_minima
from shared.model.objects import Pod


def a_pod(uid: str = "a", **fields: Any) -> Pod:
    return Pod(uid=uid, namespace="team", name=uid, resource_version=1, shape=b"", **fields)


def counted(*pods: Pod) -> MemberDeclarations:
    found = MemberDeclarations()
    for pod in pods:
        found.add(pod)
    return found


def test_without_members_nothing_is_declared() -> None:
    found = counted(a_pod(group_min_member=4))
    assert found.remove(a_pod(group_min_member=4))
    assert found.declared == Declared(0, None, "")


def test_of_minima_the_largest_counts_until_all_members_name_the_smaller_one() -> None:
    found = counted(*(a_pod(f"p{i}", group_min_member=8) for i in range(3)))
    for i in range(3):
        assert found.declared.minimum == 8
        found.replace(a_pod(f"p{i}", group_min_member=8), a_pod(f"p{i}", group_min_member=4))
        assert found.disagree == (i < 2)
    assert found.declared.minimum == 4


def test_of_queues_the_one_counts_that_most_members_name() -> None:
    found = counted(a_pod("a"), a_pod("b", queue="lab"), a_pod("c", queue="art"))
    assert (found.declared.queue, found.queues()) == ("art", ("art", "lab"))
    assert found.add(a_pod("d", queue="lab"))
    assert found.declared.queue == "lab"


@pytest.mark.parametrize(
    "gone", [{"deleting": True}, {"phase": "Failed"}, {"phase": "Succeeded"}], ids=str
)
def test_members_that_have_ended_count_only_where_no_other_says_anything(
    gone: dict[str, Any],
) -> None:
    ended = a_pod("old", group_min_member=8, priority=9, queue="old", **gone)
    found = counted(ended)
    assert found.declared == Declared(8, 9, "old")
    found.add(a_pod("mute"))
    assert found.declared == Declared(8, 0, "old")
    found.add(a_pod("new", group_min_member=4, queue="new"))
    assert found.declared == Declared(4, 0, "new")


@pytest.mark.parametrize("seed", range(5))
def test_after_any_changes_it_is_as_if_only_the_members_that_exist_had_been_counted(
    seed: int,
) -> None:
    drawn = random.Random(seed)
    found, there = MemberDeclarations(), dict[str, Pod]()
    for _ in range(300):
        uid = f"p{drawn.randrange(12)}"
        pod = a_pod(
            uid,
            group_min_member=drawn.choice([0, 4, 8]),
            priority=drawn.choice([0, 10]),
            queue=drawn.choice(["", "a", "b"]),
            deleting=drawn.random() < 0.3,
        )
        before, known = (found.declared, found.disagree), there.get(uid)
        if known is None:
            there[uid] = pod
            changed = found.add(pod)
        elif drawn.random() < 0.5:
            there[uid] = pod
            changed = found.replace(known, pod)
        else:
            del there[uid]
            changed = found.remove(known)
        fresh = counted(*there.values())
        assert (found.declared, found.disagree) == (fresh.declared, fresh.disagree)
        assert changed == ((found.declared, found.disagree) != before)


def test_minima_of_roles_bind_where_the_gangs_own_covers_their_sum() -> None:
    minima = (("ps", 1), ("worker", 3))
    assert binding_role_minima(4, minima) == minima
    assert binding_role_minima(3, minima) == ()

"""By which name `tutti why` calls a gang: its user's, where there is one."""

import msgspec
import pytest

from tests.support.golden import Golden
from tests.tutti.why.situations import answer, gang, member, owned


def test_a_gang_is_named_after_what_its_user_created_and_not_after_the_group_made_for_it(
    golden: Golden,
) -> None:
    group = owned(gang("Inqueue", "no room", name="second-4c35c4a5"), "Job", "second")
    found = answer(groups=(group,))
    golden(found.sentence)
    assert (found.gangs[0].gang, found.gangs[0].name) == ("ns/second-4c35c4a5", "job/second")
    found = answer(groups=(group,), tops={"uid-second": "cronjob/nightly"})
    golden(found.sentence)


@pytest.mark.parametrize(
    ("scope", "sentence"),
    [
        (
            "podgroups.scheduling.k8s.io",
            "podgroups.scheduling.k8s.io ns/g does not exist: create it",
        ),
        ("yunikorn", "no pod declares the gang ns/g of yunikorn"),
    ],
)
def test_a_gang_that_is_missing_is_named_with_its_api(scope: str, sentence: str) -> None:
    found = member("a")
    pod = msgspec.structs.replace(found.pod, group_scope=scope)
    assert answer(msgspec.structs.replace(found, pod=pod)).sentence == f"pod/a waits: {sentence}"


def test_a_gang_that_its_pods_declare_has_their_common_owners_name_or_its_own() -> None:
    words = "1 of 3 members exist that could run"
    alone = answer(*(member(f"p{i}", declared=3, unscheduled=words) for i in range(2)))
    assert alone.sentence == f"gang/g waits: {words}"
    assert [(one.gang, one.members, one.min_member) for one in alone.gangs] == [("ns/g", 2, 3)]
    owned = answer(*(member(f"p{i}", declared=3, owner="train") for i in range(2)))
    assert [one.name for one in owned.gangs] == ["owner/train"]
    pods = (member("p0", declared=3, owner="train"), member("p1", declared=3, owner="other"))
    assert [one.name for one in answer(*pods).gangs] == ["gang/g"]


def test_a_group_that_its_user_made_has_the_name_of_the_object_of_its_pods(golden: Golden) -> None:
    group = gang("Pending", "no room")
    owned = answer(*(member(f"p{i}", owner="train") for i in range(2)), groups=(group,))
    golden(owned.sentence)
    two = (member("p0", owner="train"), member("p1", owner="other"))
    bare = (member("p0"), member("p1", owner="train"))
    for pods in (two, bare):
        golden(answer(*pods, groups=(group,)).sentence)


def test_a_gang_whose_pods_kueue_gates_waits_for_its_queue() -> None:
    words = "2 members have scheduling gates: kueue.x-k8s.io/admission"
    gated = [member(f"p{i}", declared=2, unscheduled=words, awaited_queue="team") for i in range(2)]
    expected = f"gang/g waits: {words}; Kueue's LocalQueue team has not admitted it"
    assert answer(*gated).sentence == expected
    of_object = answer(
        *(member(f"p{i}", awaited_queue="team") for i in range(2)), groups=(gang("Pending", words),)
    )
    assert of_object.sentence == expected.replace("gang/", "podgroup/")

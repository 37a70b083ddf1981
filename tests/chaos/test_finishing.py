"""Half of a gang never finishes: what makes a deadlock of two schedulers visible."""

from collections import Counter
from random import Random

import pytest

from tests.chaos.finishing import FinishingUsers
from tests.chaos.forms import KUBE_SCHEDULER, TUTTI
from tests.chaos.gangs import Gang
from tests.controlplane.client import Object, RawClient

LIVES_S = 5.0


class Members:
    """A gang of three and the UIDs of its pods that were let finish."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.users = FinishingUsers(
            RawClient.__new__(RawClient), Random(1), alive_max=20, room=40, finish=self.ended.append
        )
        self.gang = self.users.request(TUTTI, 3)
        self.gang.lives_s = LIVES_S

    def whole_at(self, now_s: float) -> None:
        """All of them run since then."""
        self.gang.whole_at_s = now_s

    def pass_at(self, now_s: float, *phases: str) -> bool:
        """Whether its user deletes it, with pods in these phases."""
        pods: dict[int, Object] = {
            number: {"metadata": {"uid": f"uid-{number}"}, "status": {"phase": phase}}
            for number, phase in enumerate(phases)
        }
        return self.users.is_over(self.gang, pods, now_s)


@pytest.fixture
def members() -> Members:
    return Members()


def test_pods_end_together_once_all_have_run_together(members: Members) -> None:
    members.whole_at(100.0)
    assert not members.pass_at(100.0 + LIVES_S, "Running", "Running", "Running")
    assert not members.ended, "its time has not passed"
    assert not members.pass_at(101.0 + LIVES_S, "Running", "Running", "Running")
    assert members.ended == ["uid-0", "uid-1", "uid-2"]
    assert members.users.unfinished() == [members.gang.name]
    assert members.pass_at(102.0 + LIVES_S, "Succeeded", "Succeeded", "Succeeded")
    assert not members.users.unfinished()


@pytest.mark.parametrize("third", ["Pending", "Failed"])
def test_what_is_left_of_a_gang_does_not_end(members: Members, third: str) -> None:
    members.whole_at(100.0)
    for now_s in (101.0, 1000.0):
        assert not members.pass_at(now_s, "Running", "Running", third)
    assert members.gang.whole_at_s is None, "it has to be whole again, for as long again"
    assert not members.ended
    assert members.users.unfinished() == [members.gang.name]


def test_members_that_ended_first_count_until_the_last_one_ends(members: Members) -> None:
    members.whole_at(100.0)
    assert not members.pass_at(101.0 + LIVES_S, "Succeeded", "Running", "Succeeded")
    assert members.ended == ["uid-1"]


def test_gangs_of_both_schedulers_come_until_so_many_are_alive(members: Members) -> None:
    members.users.arrive()
    alive = members.users.alive()
    assert len(alive) == 20
    assert set(Counter(one.scheduler for one in alive)) == {TUTTI, KUBE_SCHEDULER}
    alive[0].ended = True
    members.users.arrive()
    assert len(members.users.alive()) == 20


def test_kube_schedulers_gangs_are_of_its_own_api_and_have_no_settings_of_tutti(
    members: Members,
) -> None:
    members.users.arrive()

    def of(scheduler: str) -> list[Gang]:
        return [one for one in members.users.alive() if one.scheduler == scheduler]

    assert {one.form for one in of(KUBE_SCHEDULER)} == {"kubernetes"}
    assert {one.form for one in of(TUTTI)} == {"volcano", "sigs", "job", "kubernetes"}
    assert not any(one.settings for one in of(KUBE_SCHEDULER))
    native = of(KUBE_SCHEDULER)[0].pod(0)
    assert native["spec"]["schedulerName"] == KUBE_SCHEDULER
    assert native["spec"]["schedulingGroup"]["podGroupName"] == of(KUBE_SCHEDULER)[0].name
    assert not native["metadata"]["annotations"]

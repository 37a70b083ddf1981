"""No key ever belongs to two members at once, and each belongs to one in the end."""

import random

import pytest

from services.controller.reconciling.membership import Heartbeat, Membership, owner

KEYS = [f"ns/job-{number}" for number in range(40)]
EXPIRE_S = 7.0
ROUND_S = 2.0


def test_a_member_that_is_alone_owns_everything_at_its_first_look() -> None:
    me = Membership("a", expire_s=EXPIRE_S)
    assert not me.owns("ns/x", 0.0)
    me.renewed(0.0, 0.0)
    assert me.observe({}, (), 0.0)
    assert me.owns("ns/x", 0.0)


def test_a_member_that_could_not_say_that_it_lives_stops_before_the_others_take_over() -> None:
    me = Membership("a", expire_s=EXPIRE_S)
    me.renewed(0.0, 0.0)
    me.observe({}, (), 0.0)
    assert me.owns("ns/x", EXPIRE_S * 0.6)
    assert not me.owns("ns/x", EXPIRE_S * 0.8)


def test_what_was_passed_over_while_an_answer_was_late_is_gained_again() -> None:
    me = Membership("a", expire_s=EXPIRE_S)
    me.renewed(0.0, 0.0)
    me.observe({}, (), 0.0)
    late_s = EXPIRE_S * 0.8
    assert not me.owns("ns/x", late_s)
    me.renewed(EXPIRE_S * 0.3, late_s)
    assert me.observe({}, (), late_s)
    assert me.owns("ns/x", late_s)


def test_a_member_is_silent_from_its_last_word_on_and_never_oneself() -> None:
    one = Membership("a", expire_s=10.0)
    heartbeats = {"a": Heartbeat((), "1"), "b": Heartbeat((), "1"), "c": Heartbeat((), "1")}
    one.observe(heartbeats, (), now_s=0.0)
    one.observe(heartbeats | {"c": Heartbeat((), "2")}, (), now_s=60.0)

    assert one.silent(now_s=99.0, for_s=100.0) == []
    assert one.silent(now_s=100.0, for_s=100.0) == ["b"]


def test_a_key_is_not_handed_over_while_it_is_worked_at() -> None:
    me = Membership("a", expire_s=EXPIRE_S)
    me.renewed(0.0, 0.0)
    me.observe({}, (), 0.0)
    lost = next(key for key in KEYS if owner(("a", "b"), key) == "b")
    me.observe({"b": Heartbeat((), "1")}, [lost], 1.0)
    assert list(me.announced) == ["a"]
    assert not me.owns(lost, 1.0)
    me.observe({"b": Heartbeat((), "2")}, [], 2.0)
    assert list(me.announced) == ["a", "b"]


def test_a_member_that_goes_moves_only_its_own_keys() -> None:
    view = ("a", "b", "c")
    for key in KEYS:
        if owner(view, key) != "c":
            assert owner(("a", "b"), key) == owner(view, key)


class _World:
    """Members that read what the remaining members said, each in its own time, and die."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_s = 0.0
        self.living: dict[str, Membership] = {}
        self.heartbeats: dict[str, Heartbeat] = {}
        self.working: dict[str, list[str]] = {}
        self.woke_s: dict[str, float] = {}

    def round(self, name: str) -> None:
        me = self.living[name]
        if self.now_s - self.woke_s.get(name, self.now_s) >= EXPIRE_S:
            self.working[name] = []
        self.woke_s[name] = self.now_s
        self._say(me)
        # What it works at, it may work at for a while longer.
        if self.random.random() < 0.5:
            self.working[name] = []
        me.observe(dict(self.heartbeats), self.working[name], self.now_s)
        self._say(me)
        self.working[name] += [
            key for key in KEYS if me.owns(key, self.now_s) and self.random.random() < 0.1
        ]

    def _say(self, me: Membership) -> None:
        self.heartbeats[me.me] = Heartbeat(me.announced, f"{self.now_s}")
        me.renewed(self.now_s, self.now_s)

    def owners(self, key: str) -> list[str]:
        """The members that act on the key. One that sleeps does nothing, whatever it was about to
        do: what it does when it wakes is refused by UIDs and resourceVersions.
        """
        return [
            name
            for name, me in self.living.items()
            if me.owns(key, self.now_s)
            or (key in self.working[name] and self.now_s - self.woke_s[name] < EXPIRE_S)
        ]

    def step(self) -> None:
        self.now_s += self.random.uniform(0.0, ROUND_S / 2)
        what = self.random.random()
        if what < 0.06 and len(self.living) < 4:
            name = f"m{self.random.randrange(6)}"
            if name not in self.living:
                self.living[name] = Membership(name, expire_s=EXPIRE_S)
                self.working[name] = []
        elif what < 0.1 and self.living:
            dead = self.random.choice(sorted(self.living))
            del self.living[dead], self.working[dead]
            if self.random.random() < 0.5:
                self.heartbeats.pop(dead, None)
        for name in sorted(self.living):
            if self.random.random() < 0.5:
                self.round(name)


@pytest.mark.parametrize("seed", [*range(10), 21, 258])
def test_no_key_has_two_owners_whatever_comes_and_goes(seed: int) -> None:
    world = _World(seed)
    for _ in range(300):
        world.step()
        for key in KEYS:
            assert len(world.owners(key)) <= 1, (seed, world.now_s, key, world.owners(key))
    if not world.living:
        world.living["last"] = Membership("last", expire_s=EXPIRE_S)
        world.working["last"] = []
    for _ in range(20):
        world.now_s += ROUND_S / 2
        for name in sorted(world.living):
            world.working[name] = []
            world.round(name)
    assert all(len(world.owners(key)) == 1 for key in KEYS)

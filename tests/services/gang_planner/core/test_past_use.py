"""The policy `past-use`: what queues and users have used before, with a half-life."""

import random
from collections.abc import Callable

import msgspec
import pytest
from typing_extensions import override

from services.gang_planner.core.cycle import Step
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.past_use import USERS_MAX, Account, AccountKey
from shared.contracts.decisions import AccountUse, GangDecision, UseCharged
from shared.model.objects import Labels, Queue
from tests.services.gang_planner.core.inside import state_of
from tests.services.gang_planner.core.replayed import Recorded, prove_replay
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

HALF_LIFE_MS = 60_000
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{{name: past-use, arguments: {{half-life: 1m{more}}}}}, {{name: gang}}]
- plugins: [{{name: predicates}}]
"""
BY_USER = CONF.format(more="")
BY_LABEL = CONF.format(more=', user: "label:example.com/user"')
CPU = make_shape({"cpu": 1000})


def expected(past: float, held: float, lasts_ms: float) -> float:
    """The past use by the formula, as part of the cluster."""
    left = 2 ** (-lasts_ms / HALF_LIFE_MS)
    return float(past * left + held * (1 - left))


class UseScene(Recorded):
    """A cluster of 10 CPUs, whose accounts are checked after every step."""

    def __init__(self, conf: str = BY_USER, cpus: int = 10) -> None:
        nodes = [make_node("n", {"cpu": cpus * 1000, "pods": 5_000})]
        self.serial = 0
        super().__init__(nodes, conf=conf)

    @override
    def step(self, *, after_ms: int = 0, fresh: bool = True) -> Step:
        step = super().step(after_ms=after_ms, fresh=fresh)
        check_accounts(self.planner)
        return step

    def submit(self, user: str, pods: int = 1, *, queue: str = "", labels: Labels = ()) -> str:
        """A gang of pods with a CPU each; the user is its namespace."""
        self.serial += 1
        name = f"g{self.serial}"
        self.put(
            make_group(
                name, pods, namespace=user, queue=queue, created_ms=self.serial, uid=f"u-{name}"
            ),
            *make_pods(
                name,
                pods,
                CPU,
                namespace=user,
                labels=msgspec.msgpack.encode(labels) if labels else b"",
            ),
        )
        return name

    def end(self, name: str) -> None:
        """The gang is gone."""
        for pod in [pod for pod in self.pods.values() if pod.group_name == name]:
            self.remove(pod)
        for group in [one for one in self.objects.values() if one.name == name]:
            self.remove(group)

    def runs(self, name: str) -> bool:
        return self.bound(name) > 0

    def use(self, user: str | None, queue: str = "default") -> AccountUse:
        """The account as the log has it now."""
        found: AccountUse | None = None
        for _, record in self.records:
            if isinstance(record, UseCharged):
                for one in record.accounts:
                    if (one.queue, one.user) == (queue, user):
                        found = one
                if (queue, user) in record.forgotten:
                    found = None
        assert found is not None, f"{queue} {user} has no account"
        return found

    def past(self, user: str | None, queue: str = "default") -> float:
        """Its past use at this instant, as part of the cluster."""
        use = self.use(user, queue)
        return expected(use.past / 1e12, use.held / 1e6, self.now_ms - use.at_ms)


def check_accounts(planner: Planner) -> None:
    """Every account has exactly what the gangs of its user hold."""
    state = state_of(planner)
    held: dict[tuple[str, str | None], dict[int, int]] = {}
    for gang in state.gangs.gangs.values():
        if gang.account is None or not gang.held:
            continue
        sums = held.setdefault(gang.account.key, {})
        for row, amount in state.shapes.sums(gang.held.items()).items():
            sums[row] = sums.get(row, 0) + amount
    for key, account in state.past_use.accounts.items():
        if key[1]:
            known = {row: amount for row, amount in account.amounts.items() if amount}
            assert known == {row: n for row, n in held.pop(key, {}).items() if n}, key
    assert not held


def test_the_first_user_begins_with_nothing_and_is_charged_for_what_it_holds() -> None:
    scene = UseScene()
    scene.submit("a", 5)
    scene.step()
    scene.carry_out(phase="Running")
    assert scene.use("a").past == 0
    assert scene.use("a").held == 500_000
    scene.step(after_ms=HALF_LIFE_MS)
    scene.submit("a", 2)
    scene.step()
    assert scene.use("a").past == 250_000_000_000
    assert scene.use("a").held == 700_000
    assert scene.use(None).held == 700_000
    prove_replay(scene)


def test_the_user_that_has_used_less_goes_first() -> None:
    scene = UseScene()
    scene.submit("small")
    scene.submit("much", 9)
    scene.step()
    scene.carry_out(phase="Running")
    scene.step(after_ms=HALF_LIFE_MS)
    earlier = scene.submit("much", 9)
    later = scene.submit("small", 9)
    scene.end("g2")
    scene.step()
    scene.carry_out()
    assert scene.runs(later)
    assert not scene.runs(earlier)
    prove_replay(scene)


def test_a_newcomer_begins_with_the_mean_of_those_that_are_active() -> None:
    scene = UseScene()
    scene.submit("small", 1)
    scene.submit("much", 9)
    scene.step()
    scene.carry_out(phase="Running")
    scene.step(after_ms=10 * HALF_LIFE_MS)
    scene.submit("new", 1)
    scene.step()
    assert scene.past("new") == pytest.approx(0.5, abs=1e-3)
    assert scene.use("new").held == 0
    # The user that has used less than the mean goes before the newcomer, the other one after it.
    many = [scene.submit(user, 1) for user in ("much", "small", "new") for _ in range(1)]
    scene.end("g1")
    scene.step()
    scene.carry_out()
    assert [scene.runs(name) for name in many] == [False, True, False]
    prove_replay(scene)


def test_a_newcomer_has_neither_debt_nor_credit_beside_one_user() -> None:
    """It gets half of what becomes free, not all of it, and not nothing."""
    scene = UseScene()
    old = [scene.submit("a") for _ in range(10)]
    scene.step()
    scene.carry_out(phase="Running")
    scene.step(after_ms=20 * HALF_LIFE_MS)
    mine = [scene.submit("a") for _ in range(10)]
    others = [scene.submit("b") for _ in range(10)]
    for name in old:
        scene.end(name)
    scene.step()
    scene.carry_out()
    assert sum(scene.runs(name) for name in mine) == 5
    assert sum(scene.runs(name) for name in others) == 5


def test_a_new_name_is_no_credit() -> None:
    """The gangs of a user that uses a new namespace for each have no better turn than others."""
    scene = UseScene()
    scene.submit("honest", 5)
    scene.submit("x", 5)
    scene.step()
    scene.carry_out(phase="Running")
    scene.step(after_ms=HALF_LIFE_MS)
    for number in range(5):
        scene.submit(f"made-up-{number}")
    scene.step()
    for number in range(5):
        assert scene.past(f"made-up-{number}") == pytest.approx(scene.past("honest"))


def test_queues_take_turns_by_past_use_and_weight() -> None:
    scene = UseScene()
    for name, weight in (("light", 1), ("heavy", 3)):
        scene.put(
            Queue(uid=f"q-{name}", dialect="volcano", name=name, weight=weight, resource_version=1)
        )
    gangs = {
        queue: [scene.submit(queue, queue=queue) for _ in range(12)] for queue in ("heavy", "light")
    }
    scene.step()
    scene.carry_out()
    running = {queue: sum(map(scene.runs, names)) for queue, names in gangs.items()}
    assert running == {"heavy": 7, "light": 3} or running == {"heavy": 8, "light": 2}
    prove_replay(scene)


def test_users_by_a_label_of_the_pods() -> None:
    scene = UseScene(BY_LABEL)
    scene.submit("team", 4, labels=(("example.com/user", "ann"),))
    scene.submit("other", 3, labels=(("example.com/user", "ann"),))
    scene.submit("team", 2)
    scene.step()
    assert scene.use("ann").held == 700_000
    assert scene.use("namespace team").held == 200_000


def test_one_gang_or_many_restarted_every_second_or_not_make_no_difference() -> None:
    """The same amounts over the same time are charged alike, and no sample misses any."""
    scene = UseScene()
    scene.submit("one", 4)
    many = [scene.submit("many") for _ in range(4)]
    restarts = scene.submit("restarts", 1)
    scene.step()
    for _ in range(120):
        scene.carry_out(phase="Running")
        scene.step(after_ms=400)
        scene.end(restarts)
        restarts = scene.submit("restarts", 1)
        for name in many:
            scene.end(name)
        many = [scene.submit("many") for _ in range(4)]
        scene.step(after_ms=600)
        scene.carry_out(phase="Running")
    lasts_ms = scene.now_ms - 10_000
    assert scene.past("one") == pytest.approx(expected(0, 0.4, lasts_ms), abs=1e-6)
    assert scene.past("many") == pytest.approx(expected(0, 0.4, lasts_ms), abs=1e-6)
    assert scene.past("restarts") == pytest.approx(expected(0, 0.1, lasts_ms), abs=1e-6)


def test_what_ended_without_a_planner_is_charged_up_to_the_takeover() -> None:
    scene = UseScene()
    name = scene.submit("a", 5)
    scene.step()
    scene.carry_out(phase="Running")
    scene.step()
    scene.now_ms += HALF_LIFE_MS // 2
    scene.end(name)
    scene.now_ms += HALF_LIFE_MS // 2
    scene.restart()
    scene.step()
    assert scene.past("a") == pytest.approx(0.25, abs=1e-6)
    scene.step(after_ms=HALF_LIFE_MS)
    assert scene.past("a") == pytest.approx(0.125, abs=1e-6)


def test_an_account_without_use_is_dropped_when_its_gang_is_gone() -> None:
    scene = UseScene()
    scene.submit("a", 10)
    scene.step()
    scene.carry_out(phase="Running")
    waits = scene.submit("b", 10)
    scene.step(after_ms=1_000)
    assert scene.use("b").past > 0
    scene.end(waits)
    scene.step()
    with pytest.raises(AssertionError, match="has no account"):
        scene.use("b")
    prove_replay(scene)


def test_an_account_is_dropped_when_its_use_has_faded() -> None:
    scene = UseScene()
    name = scene.submit("a", 10)
    scene.step()
    scene.carry_out(phase="Running")
    scene.step(after_ms=HALF_LIFE_MS)
    scene.end(name)
    scene.step(after_ms=1)
    scene.step(after_ms=18 * HALF_LIFE_MS)
    assert scene.past("a") > 0
    scene.step(after_ms=2 * HALF_LIFE_MS)
    with pytest.raises(AssertionError, match="has no account"):
        scene.use("a")
    prove_replay(scene)


def test_users_beyond_the_limit_share_one_account(monkeypatch: pytest.MonkeyPatch) -> None:
    assert USERS_MAX >= 100
    module = "services.gang_planner.core.lifecycle.use_accounting"
    monkeypatch.setattr(f"{module}.USERS_MAX", 3)
    scene = UseScene()
    names = [scene.submit(f"user-{number}") for number in range(6)]
    scene.step()
    scene.carry_out(phase="Running")
    assert scene.use("").held == 300_000
    assert len(state_of(scene.planner).past_use.users_of("default")) == 4
    scene.end(names[0])
    scene.step(after_ms=1_000)
    scene.step(after_ms=21 * HALF_LIFE_MS)
    scene.step(after_ms=1_000)
    assert scene.use("").held == 200_000
    prove_replay(scene)


def test_a_clock_that_was_set_back_charges_nothing_twice() -> None:
    scene = UseScene()
    scene.submit("a", 5)
    scene.step()
    scene.carry_out(phase="Running")
    scene.step(after_ms=HALF_LIFE_MS)
    scene.submit("b")
    scene.step()
    scene.now_ms = scene.synced_ms = 5_000
    scene.submit("c")
    scene.step()
    assert scene.use("a").at_ms == 5_000
    assert scene.past("a") == pytest.approx(0.25, abs=1e-6)
    scene.step(after_ms=HALF_LIFE_MS)
    assert scene.past("a") == pytest.approx(0.375, abs=1e-6)


def test_without_the_policy_nothing_is_written_and_what_is_in_the_log_is_dropped() -> None:
    scene = UseScene()
    scene.submit("a", 5)
    scene.step()
    scene.carry_out(phase="Running")
    scene.step()
    scene.planner.configure(UseScene(conf="").planner.configuration)
    records = len(scene.records)
    scene.step()
    (forgotten,) = [record for _, record in scene.records[records:]]
    assert isinstance(forgotten, UseCharged)
    assert forgotten.forgotten == (("default", None), ("default", "a"))
    scene.submit("b")
    scene.step()
    assert not any(isinstance(record, UseCharged) for _, record in scene.records[records + 1 :])


RESERVING = (
    BY_USER.replace("backfill", "backfill, reserve")
    + "configurations: [{name: reserve, arguments: {reservations: 1}}]\n"
)


class Life:
    """Users submit gangs, which end, and planners take over."""

    def __init__(self, seed: int, conf: str) -> None:
        self.chance = random.Random(seed)
        self.scene = UseScene(conf)
        self.gangs: list[str] = []

    def submit(self) -> None:
        user = self.chance.choice(["a", "b", "c"])
        labels = ((("example.com/user", self.chance.choice("xyz")),),)
        self.gangs.append(
            self.scene.submit(
                user, self.chance.randint(1, 6), labels=self.chance.choice([(), *labels])
            )
        )

    def end(self) -> None:
        if self.gangs:
            self.scene.end(self.gangs.pop(self.chance.randrange(len(self.gangs))))

    def fail(self) -> None:
        if self.scene.pods:
            self.scene.change(self.chance.choice(sorted(self.scene.pods)), phase="Failed")

    def grow(self) -> None:
        name = f"more-{len(self.scene.objects)}"
        self.scene.put(make_node(name, {"cpu": 2000, "pods": 10}))

    def step(self) -> None:
        self.scene.step(after_ms=self.chance.choice([0, 10, 1_000, 50_000]))
        self.scene.carry_out(phase=self.chance.choice(["Running", "Pending"]))

    def play(self, *more: Callable[[], None]) -> None:
        for _ in range(60):
            self.chance.choice([self.submit, self.submit, self.end, self.fail, self.step, *more])()
        self.step()


@pytest.mark.parametrize(
    "conf", [BY_USER, BY_LABEL, RESERVING], ids=["by namespace", "by label", "with reservations"]
)
@pytest.mark.parametrize("seed", range(8))
def test_a_replay_of_the_cycles_that_wrote_something_writes_the_same(seed: int, conf: str) -> None:
    life = Life(seed, conf)
    life.play(life.grow)
    assert any(isinstance(record, UseCharged) for _, record in life.scene.records)
    prove_replay(life.scene)


@pytest.mark.parametrize("checkpoint", [False, True], ids=["from the log", "from a checkpoint"])
@pytest.mark.parametrize("seed", range(8))
def test_planners_that_take_over_continue_the_accounts(seed: int, checkpoint: bool) -> None:
    life = Life(seed, BY_USER)

    def take_over() -> None:
        life.scene.step()
        before = {key: each.logged for key, each in _accounts(life.scene.planner)}
        life.scene.restart(checkpoint=checkpoint)
        assert {key: each.logged for key, each in _accounts(life.scene.planner)} == before

    life.play(life.grow, take_over)


def _accounts(planner: Planner) -> list[tuple[AccountKey, Account]]:
    return [
        (key, each)
        for key, each in state_of(planner).past_use.accounts.items()
        if each.logged is not None
    ]


def test_a_planner_that_takes_over_at_any_record_goes_on_with_the_same_use() -> None:
    life = Life(3, BY_USER)
    life.play()
    records = life.scene.records
    uses = [
        (at, record) for at, (_, record) in enumerate(records) if isinstance(record, UseCharged)
    ]
    assert uses
    for at, record in uses:
        planner = Planner(life.scene.conf)
        for seq, each in records[: at + 1]:
            planner.apply_decision(seq, each)
        known = {use.user: use for use in state_of(planner).past_use.logged()}
        for use in record.accounts:
            assert known[use.user] == use or use.user is None
    assert any(isinstance(record, GangDecision) for _, record in records)

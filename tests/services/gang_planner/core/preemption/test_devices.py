"""Preemptors get the devices of their victims' claims (ADR 0024)."""

from fractions import Fraction

import msgspec
import pytest

from services.gang_planner.core.preemption.device_amounts import DeviceAmounts
from services.gang_planner.core.preemption.units import Unit, VictimSource
from services.gang_planner.core.state.preempted_claims import consumers_of
from services.gang_planner.core.state.preemptions import LEAVING_MS
from shared.contracts.decisions import GangDecision
from shared.model.devices import (
    DeviceAttribute,
    DeviceConstraint,
    DeviceDetails,
    DeviceRequest,
    ResourceClaim,
    SharedDevice,
)
from shared.model.invariants import required
from tests.services.gang_planner.core.claims import make_device_claim, make_device_class, make_slice
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.preemption.crowd import (
    WHOLE_GANGS,
    accept,
    decided,
    ends,
    evictions,
    leave,
    names,
)
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape
from tests.services.gang_planner.core.test_devices import members
from tests.services.gang_planner.core.test_extended_resources import claim_of, gpu_class, requesting

RACK = "gpu.example.com/rack"


class Stage(LoggedScene):
    """Nodes with devices and much CPU; claims are written as binders and the controller do it."""

    def __init__(self, devices: tuple[int, ...], conf: str = WHOLE_GANGS) -> None:
        nodes = [
            make_node(f"n{at}", {"cpu": 64_000, "memory": 1 << 40, "pods": 110})
            for at in range(len(devices))
        ]
        super().__init__(nodes, conf=conf)
        self.put(make_device_class())
        self.put(*(make_slice(f"n{at}", count) for at, count in enumerate(devices)))
        self.claims: dict[str, ResourceClaim] = {}
        self._allocated: set[int] = set()

    def claim(self, name: str, count: int = 1, **fields: object) -> None:
        self.write(make_device_claim(name, count, **fields))

    def write(self, claim: ResourceClaim) -> None:
        before = self.claims.get(claim.name)
        version = before.resource_version + 1 if before is not None else 1
        self.claims[claim.name] = msgspec.structs.replace(claim, resource_version=version)
        self.put(self.claims[claim.name])

    def gang(
        self, name: str, claims: list[tuple[str, ...]], *, least: int | None = None, priority: int
    ) -> None:
        pods = [
            msgspec.structs.replace(pod, priority=priority, started_ms=1_000)
            for pod in members(name, claims, cpu=100)
        ]
        self.put(make_group(name, len(claims) if least is None else least), *pods)

    def runs(
        self,
        name: str,
        claims: list[tuple[str, ...]],
        *,
        least: int | None = None,
    ) -> None:
        """A gang appears and runs, and its claims have their devices."""
        self.gang(name, claims, least=least, priority=0)
        self.until_quiet()
        self.carry_out(phase="Running")
        self.allocate()
        self.until_quiet()
        assert self.bound(name) == len(claims)

    def allocate(self) -> None:
        """CLUSTER shows the claims as the binder has written them."""
        for seq, decision in self.decisions:
            if seq in self._allocated:
                continue
            self._allocated.add(seq)
            for one in decision.devices:
                if one.extended is not None:
                    self.write(claim_of(one))
                    continue
                claim = self.claims[one.claim]
                changes: dict[str, object] = {
                    "reserved_for": (*claim.reserved_for, one.pod_uid),
                }
                if one.devices:
                    changes["has_allocation"] = True
                    changes["allocated"] = tuple(device[1:] for device in one.devices)
                self.write(msgspec.structs.replace(claim, **changes))

    def deallocate(self) -> None:
        """The claims controller has seen all pods that are gone."""
        for claim in list(self.claims.values()):
            left = tuple(uid for uid in claim.reserved_for if uid in self.pods)
            if left == claim.reserved_for:
                continue
            claim = msgspec.structs.replace(claim, reserved_for=left)
            if not left:
                claim = msgspec.structs.replace(claim, has_allocation=False, allocated=())
            self.write(claim)


def full(least: int = 1) -> Stage:
    """Two nodes with two devices each, all of them in use by a gang of four."""
    stage = Stage((2, 2))
    for at in range(4):
        stage.claim(f"low{at}")
    stage.runs("low", [(f"low{at}",) for at in range(4)], least=least)
    return stage


def devices(decision: GangDecision) -> list[tuple[str, str]]:
    return sorted((one[2], one[3]) for each in decision.devices for one in each.devices)


def test_a_gang_that_lacks_only_devices_gets_those_of_as_few_victims_as_it_needs() -> None:
    stage = full()
    stage.claim("high")
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    (eviction,) = evictions(stage)
    (victim,) = eviction.victims
    node = stage.pods[victim.uid].node
    (held,) = stage.claims[f"low{victim.name[-1]}"].allocated
    assert [one.node for one in eviction.bindings] == [node]
    accept(stage)
    stage.until_quiet()
    leave(stage)
    stage.until_quiet()
    assert decided(stage, "high") == [], "the claim of its victim has the device still"
    stage.deallocate()
    stage.until_quiet()
    (decision,) = decided(stage, "high")
    assert devices(decision) == [held[1:]]
    assert ends(stage) == []


def test_the_devices_of_victims_are_reserved_while_the_victims_leave() -> None:
    """A gang that comes while only one of two victims has left does not get its device, also from a
    planner that has read the log.
    """
    stage = full()
    stage.claim("high", 2)
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    (eviction,) = evictions(stage)
    accept(stage)
    stage.until_quiet()
    stage.remove(stage.pods[eviction.victims[0].uid])
    stage.deallocate()
    stage.claim("late")
    stage.gang("late", [("late",)], priority=0)
    stage.until_quiet()
    assert decided(stage, "late") == []
    stage.restart()
    stage.until_quiet()
    assert decided(stage, "late") == []
    leave(stage)
    stage.deallocate()
    stage.until_quiet()
    (decision,) = decided(stage, "high")
    assert len(devices(decision)) == 2
    assert decided(stage, "late") == []


def test_pods_of_one_node_are_evicted_for_a_pod_that_needs_several_devices() -> None:
    stage = full()
    stage.claim("high", 2)
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    (eviction,) = evictions(stage)
    assert len(eviction.victims) == 2
    assert len({stage.pods[one.uid].node for one in eviction.victims}) == 1


def test_a_shared_claim_frees_its_devices_only_with_all_its_pods() -> None:
    """The two pods of `shared` have one device; evicting one of them alone helps no gang."""
    stage = Stage((1,))
    stage.claim("shared")
    stage.runs("low", [("shared",), ("shared",)], least=1)
    stage.claim("high")
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    (eviction,) = evictions(stage)
    assert sorted(names(eviction.victims)) == ["low-0", "low-1"]


def test_no_pod_is_evicted_for_devices_that_a_claim_keeps() -> None:
    stage = full()
    for claim in list(stage.claims.values()):
        stage.write(msgspec.structs.replace(claim, reserved_beyond_pods=True))
    stage.claim("high")
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    assert evictions(stage) == []


def test_no_pod_is_evicted_while_the_devices_of_gone_pods_are_about_to_be_free() -> None:
    stage = full()
    stage.remove(stage.pods["low-3"])
    stage.until_quiet()
    stage.claim("high")
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    assert evictions(stage) == []
    stage.deallocate()
    stage.until_quiet()
    assert len(decided(stage, "high")) == 1


@pytest.mark.parametrize("alike", [0, 1])
def test_a_gang_with_a_constraint_evicts_the_pods_whose_devices_satisfy_it(alike: int) -> None:
    """Two devices of one node are in the same rack. The victims of the other node are as cheap, and
    their devices do not satisfy the constraint.
    """
    stage = full()
    for node in range(2):
        racks = ("r", "r") if node == alike else ("s", "t")
        details = tuple(
            DeviceDetails(attributes=(DeviceAttribute(name=RACK, value=rack),)) for rack in racks
        )
        stage.put(make_slice(f"n{node}", 2, details=details))
    stage.claim(
        "high",
        requests=(DeviceRequest(name="r", device_class="gpu", count=2),),
        constraints=(DeviceConstraint(attribute=RACK),),
    )
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    (eviction,) = evictions(stage)
    assert [stage.pods[one.uid].node for one in eviction.victims] == [f"n{alike}"] * 2
    assert [one.node for one in eviction.bindings] == [f"n{alike}"]


def test_no_pod_is_evicted_for_a_constraint_that_no_devices_satisfy() -> None:
    stage = full()
    stage.claim("high", constraints=(DeviceConstraint(attribute=RACK),))
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    assert evictions(stage) == []


def test_devices_of_a_pod_that_waits_are_not_about_to_be_free() -> None:
    """A binder that died allocated them, and its pod has not been bound since."""
    stage = Stage((2,))
    stage.claim("low")
    stage.runs("low", [("low",)])
    held = (("gpu.example.com", "n0", "gpu-1"),)
    stage.claim("stuck", reserved_for=("stuck-0",), has_allocation=True, allocated=held)
    stage.gang("stuck", [("stuck",)], least=2, priority=0)
    stage.claim("high")
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    (eviction,) = evictions(stage)
    assert names(eviction.victims) == ["low-0"]


def test_claims_not_seen_with_devices_yet_keep_them_in_a_search_for_victims() -> None:
    """The pod of `low` is bound, and CLUSTER does not show its claim with a device yet. After the
    search its device is still the one that its decision named, and no other claim gets it.
    """
    stage = Stage((2,))
    stage.claim("first")
    stage.runs("first", [("first",)])
    stage.claim("low")
    stage.gang("low", [("low",)], priority=0)
    stage.until_quiet()
    stage.carry_out(phase="Running")
    (decision,) = decided(stage, "low")
    assert devices(decision) == [("n0", "gpu-1")]
    stage.remove(stage.pods["first-0"])
    stage.deallocate()
    stage.claim("high", 2, constraints=(DeviceConstraint(attribute=RACK),))
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    assert evictions(stage) == []
    stage.claim("late")
    stage.gang("late", [("late",)], priority=0)
    stage.until_quiet()
    (late,) = decided(stage, "late")
    assert devices(late) == [("n0", "gpu-0")]


def test_devices_of_pods_that_leave_anyway_are_reserved_with_those_of_the_victims() -> None:
    """A user has deleted one of the two pods. The victim leaves first, and the preemptor, which
    needs both devices, waits for the other one.
    """
    stage = Stage((2,))
    for at in range(2):
        stage.claim(f"low{at}")
    stage.runs("low", [(f"low{at}",) for at in range(2)], least=1)
    stage.change("low-0", deleting=True)
    stage.claim("high", 2)
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    (eviction,) = evictions(stage)
    assert names(eviction.victims) == ["low-1"]
    accept(stage)
    stage.remove(stage.pods["low-1"])
    stage.deallocate()
    stage.claim("late")
    stage.gang("late", [("late",)], priority=0)
    stage.until_quiet()
    assert decided(stage, "late") == []
    leave(stage)
    stage.deallocate()
    stage.until_quiet()
    (decision,) = decided(stage, "high")
    assert len(devices(decision)) == 2
    assert ends(stage) == []


@pytest.mark.parametrize("first", [0, 1])
def test_two_preemptors_of_one_node_get_their_devices_also_from_the_next_planner(
    first: int,
) -> None:
    """Whichever victim leaves first: the next planner may have reserved its device for the other
    preemptor.
    """
    stage = Stage((2,))
    for at in range(2):
        stage.claim(f"low{at}")
    stage.runs("low", [(f"low{at}",) for at in range(2)], least=0)
    for at in range(2):
        stage.claim(f"high{at}")
        stage.gang(f"high{at}", [(f"high{at}",)], priority=10)
        stage.until_quiet()
    victims = [one.uid for eviction in evictions(stage) for one in eviction.victims]
    assert sorted(victims) == ["low-0", "low-1"]
    accept(stage)
    stage.restart()
    stage.until_quiet()
    stage.remove(stage.pods[victims[first]])
    stage.deallocate()
    stage.until_quiet()
    leave(stage)
    stage.deallocate()
    stage.until_quiet()
    assert ends(stage) == []
    found = [devices(one) for at in range(2) for one in decided(stage, f"high{at}")]
    assert sorted(found) == [[("n0", "gpu-0")], [("n0", "gpu-1")]]


def test_a_preemption_without_an_answer_ends_if_claims_keep_the_devices() -> None:
    """Its victims have left by themselves, and their claims are never deallocated."""
    stage = full()
    stage.claim("high")
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    (eviction,) = evictions(stage)
    stage.remove(*(stage.pods[one.uid] for one in eviction.victims))
    stage.until_quiet(within_ms=LEAVING_MS - 1_000)
    assert ends(stage) == []
    stage.until_quiet(within_ms=2_000)
    assert ends(stage) == ["VictimsStayed"]


def test_pods_that_share_claims_are_evicted_together_in_a_large_cluster() -> None:
    """More units than the exact search takes: twenty nodes, on each the device of two pods."""
    stage = Stage((1,) * 20)
    for at in range(20):
        stage.claim(f"shared{at}")
        stage.gang(f"low{at}", [(f"shared{at}",)] * 2, least=1, priority=0)
    stage.until_quiet()
    stage.carry_out(phase="Running")
    stage.allocate()
    stage.until_quiet()
    stage.claim("high")
    stage.gang("high", [("high",)], priority=10)
    stage.until_quiet()
    (eviction,) = evictions(stage)
    assert len({stage.pods[one.uid].group_name for one in eviction.victims}) == 1
    assert len(eviction.victims) == 2


def test_a_device_shared_twice_by_a_vacated_claim_keeps_the_parts_of_others() -> None:
    stage = Stage((0,))
    device = ("gpu.example.com", "n0", "gpu-0")
    stage.put(make_slice("n0", 1, details=(DeviceDetails(shareable=True),), generation=2))

    def parts(*amounts: str) -> tuple[SharedDevice, ...]:
        driver, pool, name = device
        return tuple(
            SharedDevice(driver=driver, pool=pool, device=name, capacity=(("memory", amount),))
            for amount in amounts
        )

    two = make_device_claim("two", has_allocation=True, shares=parts("10", "20"))
    other = make_device_claim("other", has_allocation=True, shares=parts("40"))
    stage.put(two, other)
    state = stage.state
    slot = required(state.nodes.find("n0"), "n0", "is there")
    devices = state.node_capacity.devices
    assert devices.searches.on_node(slot).shares(device) == {"memory": Fraction(70)}
    devices.allocated.vacate([two])
    assert devices.searches.on_node(slot).shares(device) == {"memory": Fraction(40)}
    devices.allocated.vacate([two, other])
    assert devices.searches.on_node(slot).shares(device) is None
    devices.allocated.vacate(())
    assert devices.searches.on_node(slot).shares(device) == {"memory": Fraction(70)}


def test_searches_do_not_change_the_units_that_they_share() -> None:
    stage = full()
    stage.claim("high")
    state = stage.state
    (pod,) = members("high", [("high",)])
    consumers = consumers_of(state, ())
    shape = state.shapes.intern(pod.shape)
    amounts = DeviceAmounts(state.node_capacity.devices, consumers, [shape])
    member = state.members["low-0"]
    assert member.gang is not None
    source = VictimSource(member.gang, (member,), 1, {}, False)
    unit = Unit(source, (member,), whole=False)
    (found,) = amounts.with_devices([unit])
    slot = required(member.slot, "low-0", "is on a node")
    assert found.freed[slot][-1] == 1
    assert -1 not in unit.freed[slot]


@pytest.mark.parametrize(("size", "count"), [(16, 1), (2, 8)], ids=["single", "whole nodes"])
def test_no_more_pods_are_evicted_than_have_the_devices(size: int, count: int) -> None:
    """Sixteen nodes with eight devices each, in use by elastic gangs of eight that are spread over
    them. A selection by CPU and memory alone would not know which pods help.
    """
    stage = Stage((8,) * 16)
    for gang in range(16):
        claims = [f"low{gang}-{at}" for at in range(8)]
        for name in claims:
            stage.claim(name)
        stage.gang(f"low{gang}", [(name,) for name in claims], least=1, priority=0)
    stage.until_quiet()
    stage.carry_out(phase="Running")
    stage.allocate()
    stage.until_quiet()
    for at in range(size):
        stage.claim(f"high{at}", count)
    stage.gang("high", [(f"high{at}",) for at in range(size)], priority=10)
    stage.until_quiet()
    (eviction,) = evictions(stage)
    assert len(eviction.victims) == 16
    assert {stage.pods[one.uid].node for one in eviction.victims} == {
        one.node for one in eviction.bindings
    }


def extended(stage: Stage, gang: str, *, priority: int) -> None:
    """A gang of one pod with an extended resource, which no device plugin has."""
    containers = requesting(gpu=1)
    requests = {name: number for name, _, number in containers[0].requests}
    (pod,) = make_pods(gang, 1, make_shape({"cpu": 100, **requests}), extended=containers)
    stage.put(
        make_group(gang, 1), msgspec.structs.replace(pod, priority=priority, started_ms=1_000)
    )


@pytest.mark.parametrize("victim", ["claim", "extended"])
@pytest.mark.parametrize("preemptor", ["claim", "extended"])
def test_claims_for_extended_resources_are_vacated_and_get_devices(
    victim: str, preemptor: str
) -> None:
    stage = Stage((1,))
    stage.put(gpu_class(resource_version=2))

    def submit(gang: str, kind: str, priority: int) -> None:
        if kind == "extended":
            extended(stage, gang, priority=priority)
        else:
            stage.claim(gang)
            stage.gang(gang, [(gang,)], priority=priority)
        stage.until_quiet()

    submit("low", victim, 0)
    stage.carry_out(phase="Running")
    stage.allocate()
    stage.until_quiet()
    submit("high", preemptor, 10)
    (eviction,) = evictions(stage)
    assert len(eviction.victims) == 1
    accept(stage)
    stage.until_quiet()
    leave(stage)
    stage.until_quiet()
    assert decided(stage, "high") == [], "the claim of its victim has the device still"
    stage.deallocate()
    stage.until_quiet()
    (decision,) = decided(stage, "high")
    assert devices(decision) == [("n0", "gpu-0")]
    assert ends(stage) == []

"""Gangs whose claims request more than a number of whole devices of one node."""

from collections.abc import Iterable
from typing import Any

import pytest

from shared.contracts.decisions import DeviceChoice, DeviceConditions
from shared.model.devices import (
    CapacityPolicy,
    Counters,
    DeviceAttribute,
    DeviceClass,
    DeviceConstraint,
    DeviceDetails,
    DeviceRequest,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
    SharedDevice,
)
from shared.model.reference_objects import Namespace
from shared.model.terms import Requirement, SelectorTerm
from tests.services.gang_planner.core.claims import make_device_claim, make_device_class, make_slice
from tests.services.gang_planner.core.scene import Scene, make_group, make_node
from tests.services.gang_planner.core.test_devices import condition, members

DRIVER = "gpu.example.com"
NUMA = f"{DRIVER}/numa"
ADMIN = ("resource.kubernetes.io/admin-access", "true")
IN_RACK = SelectorTerm(expressions=(Requirement(key="rack", operator="In", values=("r1",)),))


def request(name: str = "r", **fields: Any) -> DeviceRequest:
    return DeviceRequest(name=name, **{"device_class": "gpu", **fields})


def wants(name: str, *requests: DeviceRequest, **fields: Any) -> ResourceClaim:
    return make_device_claim(name, requests=requests or (request(),), **fields)


def numa(*numbers: int | None) -> tuple[DeviceDetails, ...]:
    """Devices on these NUMA nodes; None: the attribute is missing."""
    return tuple(
        DeviceDetails(attributes=() if one is None else (DeviceAttribute(name=NUMA, value=one),))
        for one in numbers
    )


def stage(*nodes: str) -> Scene:
    """Nodes in rack r1, and a class of all devices of the driver."""
    scene = Scene([make_node(name, labels=(("rack", "r1"),)) for name in nodes or ("n0",)])
    scene.put(make_device_class())
    return scene


def submit(scene: Scene, gang: str, *claims: tuple[str, ...]) -> list[DeviceChoice]:
    """Place a gang whose members have these claims; []: it waits."""
    scene.put(make_group(gang, len(claims)), *members(gang, claims))
    decisions = scene.settle()
    assert scene.state.node_capacity.devices.grants.contradiction() == ""
    return [one for decision in decisions for one in decision.devices]


def names(choices: Iterable[DeviceChoice]) -> list[list[tuple[str, str]]]:
    """Request and device of each choice."""
    return [[(one[0], one[3]) for one in choice.devices] for choice in choices]


def sentence(scene: Scene, gang: str) -> str:
    return condition(scene, gang)[1]


class TestAll:
    def test_a_claim_for_all_devices_gets_all_of_its_node_and_nothing_while_one_is_in_use(
        self,
    ) -> None:
        scene = stage("n0", "n1")
        theirs = ((DRIVER, "n0", "gpu-1"),)
        scene.put(make_slice("n0", 2), make_slice("n1", 3), wants("c", request(all_devices=True)))
        scene.put(make_device_claim("x", allocated=theirs, reserved_for=("foreign",)))
        (choice,) = submit(scene, "g", ("c",))
        assert choice.node == "n1"
        assert names([choice]) == [[("r", f"gpu-{index}") for index in range(3)]]
        scene.put(wants("d", request(all_devices=True)))
        assert submit(scene, "h", ("d",)) == []
        assert "allocationMode All, and 1 are in use" in sentence(scene, "h")

    def test_a_node_without_a_matching_device_does_not_do(self) -> None:
        scene = stage()
        scene.put(wants("c", request(all_devices=True)))
        assert submit(scene, "g", ("c",)) == []

    def test_a_pool_that_is_being_updated_may_have_more(self) -> None:
        scene = stage()
        scene.put(make_slice("n0", 1), wants("c", request(all_devices=True)))
        scene.put(make_slice("n0", 1, driver="nic", pool_slices=2, uid="x"))
        assert submit(scene, "g", ("c",)) == []
        assert "resource pool nic/n0 is incomplete" in sentence(scene, "g")


class TestAdminAccess:
    def test_it_gets_devices_in_use_and_leaves_them_to_others(self) -> None:
        scene = stage()
        theirs = ((DRIVER, "n0", "gpu-0"),)
        scene.put(Namespace(uid="ns", name="team", resource_version=1, labels=(ADMIN,)))
        scene.put(make_slice("n0", 1), wants("c", request(admin_access=True, all_devices=True)))
        scene.put(make_device_claim("x", allocated=theirs, reserved_for=("foreign",)))
        (choice,) = submit(scene, "g", ("c",))
        assert names([choice]) == [[("r", "gpu-0")]]
        assert choice.admin == ("r",)
        scene.remove(make_device_claim("x"))
        scene.put(wants("d"))
        assert names(submit(scene, "h", ("d",))) == [[("r", "gpu-0")]]

    def test_a_namespace_without_the_label_is_named(self) -> None:
        scene = stage()
        scene.put(make_slice("n0", 1), wants("c", request(admin_access=True)))
        assert submit(scene, "g", ("c",)) == []
        assert f"needs the label {ADMIN[0]}=true on namespace team" in sentence(scene, "g")


class TestConstraints:
    def test_devices_have_an_attribute_in_common(self) -> None:
        scene = stage()
        scene.put(make_slice("n0", 4, details=numa(0, None, 1, 1)))
        same = (DeviceConstraint(attribute=NUMA),)
        scene.put(wants("c", request("a"), request("b"), constraints=same))
        assert names(submit(scene, "g", ("c",))) == [[("a", "gpu-2"), ("b", "gpu-3")]]
        scene.put(wants("d", request(count=2), constraints=same))
        assert submit(scene, "h", ("d",)) == []
        assert f"no devices satisfy matchAttribute {NUMA}" in sentence(scene, "h")

    def test_devices_differ_in_an_attribute(self) -> None:
        scene = stage()
        scene.put(make_slice("n0", 4, details=numa(0, 0, 1, None)))
        other = (DeviceConstraint(attribute=NUMA, distinct=True, requests=("a", "b")),)
        scene.put(wants("c", request("a"), request("b"), request("any"), constraints=other))
        assert names(submit(scene, "g", ("c",))) == [
            [("a", "gpu-0"), ("b", "gpu-2"), ("any", "gpu-1")]
        ]

    def test_devices_with_several_values_have_one_in_common(self) -> None:
        scene = stage()
        links = tuple(
            DeviceDetails(attributes=(DeviceAttribute(name=NUMA, value=values),))
            for values in ((0, 1), (2, 3), (1, 2))
        )
        scene.put(make_slice("n0", 3, details=links))
        same = (DeviceConstraint(attribute=NUMA),)
        scene.put(wants("c", request(count=2), constraints=same))
        assert names(submit(scene, "g", ("c",))) == [[("r", "gpu-0"), ("r", "gpu-2")]]

    def test_a_search_that_is_given_up_is_said(self) -> None:
        """Forty devices that all differ, and constraints that are hard to satisfy together."""
        scene = stage()
        keys = [f"{DRIVER}/k{index}" for index in range(3)]
        details = tuple(
            DeviceDetails(
                attributes=(
                    *(
                        DeviceAttribute(name=key, value=(index * (place + 3)) % 7)
                        for place, key in enumerate(keys)
                    ),
                    DeviceAttribute(name=f"{DRIVER}/serial", value=index),
                )
            )
            for index in range(40)
        )
        scene.put(make_slice("n0", 40, details=details))
        requests = [request(f"r{index}") for index in range(20)]
        constraints = (
            DeviceConstraint(attribute=f"{DRIVER}/serial", distinct=True),
            *(
                DeviceConstraint(attribute=key, requests=(f"r{index}", f"r{index + 7}"))
                for index, key in enumerate(keys)
            ),
            DeviceConstraint(
                attribute=keys[0], distinct=True, requests=tuple(f"r{i}" for i in range(12, 20))
            ),
        )
        scene.put(wants("c", *requests, constraints=constraints))
        assert submit(scene, "g", ("c",)) == []
        assert "the search for devices ended after 2000 steps" in sentence(scene, "g")


class TestFirstAvailable:
    def test_the_first_alternative_that_can_be_served_is_taken_and_named(self) -> None:
        scene = stage()
        scene.put(DeviceClass(uid="l", name="none", resource_version=1, selectors=("false",)))
        scene.put(make_slice("n0", 3))
        either = DeviceRequest(
            name="gpu",
            alternatives=(request("large", device_class="none"), request("two", count=2)),
        )
        scene.put(wants("c", either), wants("d", either))
        assert names(submit(scene, "g", ("c",))) == [[("gpu/two", "gpu-0"), ("gpu/two", "gpu-1")]]
        assert submit(scene, "h", ("d",)) == []
        found = sentence(scene, "h")
        assert "gpu/large: too few free devices match `false`" in found
        assert f"gpu/two: too few free devices match `device.driver == '{DRIVER}'`" in found

    def test_a_later_request_may_need_the_second_alternative_of_an_earlier_one(self) -> None:
        scene = stage()
        scene.put(make_slice("n0", 3))
        either = DeviceRequest(
            name="many", alternatives=(request("three", count=3), request("one"))
        )
        scene.put(wants("c", either, request("two", count=2)))
        assert [one[0] for one in submit(scene, "g", ("c",))[0].devices] == [
            "many/one",
            "two",
            "two",
        ]

    @pytest.mark.parametrize(("weight", "node"), [("", "n1"), ("0", "n0")])
    def test_nodes_on_which_an_earlier_alternative_is_available_are_preferred(
        self, weight: str, node: str
    ) -> None:
        """n0 is the first by name, and only its second alternative is available."""
        arguments = f", arguments: {{dynamicresources.weight: {weight}}}" if weight else ""
        scene = Scene(
            [make_node("n0"), make_node("n1")],
            conf=f"tiers: [{{plugins: [{{name: gang}}, {{name: nodeorder{arguments}}}]}}]",
        )
        scene.put(make_device_class(), make_slice("n0", 1), make_slice("n1", 2))
        either = DeviceRequest(name="many", alternatives=(request("two", count=2), request("one")))
        scene.put(wants("c", either))
        (choice,) = submit(scene, "g", ("c",))
        assert (choice.node, len(choice.devices)) == (node, 2 if node == "n1" else 1)


class TestTaints:
    def test_only_requests_that_tolerate_its_taints_get_a_device(self) -> None:
        scene = stage()
        taint = DeviceTaint(key="broken", value="yes", effect="NoExecute")
        scene.put(make_slice("n0", 1, details=(DeviceDetails(taints=(taint,)),)))
        scene.put(wants("c"))
        assert submit(scene, "g", ("c",)) == []
        assert "taint broken=yes:NoExecute is not tolerated" in sentence(scene, "g")
        tolerant = (DeviceToleration(key="broken", operator="Exists", effect="NoExecute"),)
        scene.put(wants("d", request(tolerations=tolerant)))
        assert names(submit(scene, "h", ("d",))) == [[("r", "gpu-0")]]

    @pytest.mark.parametrize(
        ("operator", "value", "tolerated"),
        [("Equal", "yes", True), ("", "yes", True), ("Equal", "no", False), ("Exists", "", True)],
    )
    def test_a_toleration_without_a_key_tolerates_any_key_with_its_value(
        self, operator: str, value: str, tolerated: bool
    ) -> None:
        """Kubernetes takes such a toleration of a device; of a node it has to be Exists."""
        scene = stage()
        taint = DeviceTaint(key="broken", value="yes", effect="NoExecute")
        scene.put(make_slice("n0", 1, details=(DeviceDetails(taints=(taint,)),)))
        toleration = DeviceToleration(key="", operator=operator, value=value, effect="")
        scene.put(wants("c", request(tolerations=(toleration,))))
        assert bool(submit(scene, "g", ("c",))) == tolerated

    def test_a_rule_taints_the_devices_that_it_selects_until_it_is_gone(self) -> None:
        scene = stage()
        rule = DeviceTaintRule(
            uid="rule",
            name="rule",
            resource_version=1,
            taint=DeviceTaint(key="broken", effect="NoSchedule"),
            driver=DRIVER,
            device="gpu-0",
        )
        scene.put(make_slice("n0", 2), wants("c"), wants("d"), rule)
        assert names(submit(scene, "g", ("c",))) == [[("r", "gpu-1")]]
        assert submit(scene, "h", ("d",)) == []
        assert "taint broken:NoSchedule is not tolerated" in sentence(scene, "h")
        scene.remove(rule)
        assert names(scene.settle()[0].devices) == [[("r", "gpu-0")]]


class TestNetwork:
    def test_members_on_several_nodes_share_a_claim_for_a_device_of_their_rack(self) -> None:
        """As the channel of a compute domain."""
        scene = stage("n0", "n1", "n2")
        scene.put(make_node("far", labels=(("rack", "r2"),)))
        channel = make_slice("r1", 1, node="", node_affinity=(IN_RACK,))
        scene.put(channel, wants("c"))
        scene.put(make_group("g", 3), *members("g", [("c",)] * 3, cpu=3000))
        (decision,) = scene.settle()
        assert {one.node for one in decision.bindings} == {"n0", "n1", "n2"}
        assert {one.devices for one in decision.devices} == {(("r", DRIVER, "r1", "gpu-0"),)}
        assert {one.node_affinity for one in decision.devices} == {(IN_RACK,)}
        scene.put(wants("d"))
        assert submit(scene, "h", ("d",)) == [], "the only device is in use on every node"

    def test_a_device_of_all_nodes_leaves_the_claim_usable_everywhere(self) -> None:
        scene = stage()
        scene.put(make_slice("any", 1, node="", all_nodes=True), wants("c"))
        (choice,) = submit(scene, "g", ("c",))
        assert choice.node_affinity == ()

    def test_each_device_may_say_where_it_is(self) -> None:
        scene = stage("n0", "n1")
        details = (DeviceDetails(node="n1"), DeviceDetails(node_affinity=(IN_RACK,)))
        scene.put(make_slice("p", 2, node="", per_device_nodes=True, details=details))
        scene.put(wants("c", request(count=2)))
        (choice,) = submit(scene, "g", ("c",))
        assert (choice.node, choice.node_affinity) == ("n1", None)

    def test_a_claim_of_which_a_logged_decision_is_read_can_be_used_on_its_nodes(self) -> None:
        scene = stage("n0", "n1")
        scene.put(make_slice("r1", 1, node="", node_affinity=(IN_RACK,)), wants("c"))
        scene.put(make_group("g", 2), *members("g", [("c",)] * 2, cpu=3000))
        scene.settle()
        seq, decision = scene.decisions[0]
        follower = stage("n0", "n1")
        follower.put(make_slice("r1", 1, node="", node_affinity=(IN_RACK,)), wants("c"), wants("d"))
        follower.planner.apply_decision(seq, decision)
        follower.put(make_group("g", 2), *members("g", [("c",)] * 2, cpu=3000))
        follower.decision_seq = seq
        assert submit(follower, "h", ("d",)) == []


def mig_slices(*, generation: int = 1) -> tuple[Any, Any]:
    """A GPU with two slices, as a whole and in two parts, and the counters that they share."""
    whole = Counters(counter_set="gpu-0", amounts=(("slices", "2"),))
    part = Counters(counter_set="gpu-0", amounts=(("slices", "1"),))
    details = tuple(
        DeviceDetails(
            attributes=(DeviceAttribute(name=f"{DRIVER}/type", value=kind),), consumes=(consumed,)
        )
        for kind, consumed in (("gpu", whole), ("mig", part), ("mig", part))
    )
    devices = make_slice("n0", 3, details=details, pool_slices=2, generation=generation)
    counters = make_slice(
        "n0", 0, shared_counters=(whole,), pool_slices=2, generation=generation, uid="counters"
    )
    return devices, counters


def of_type(kind: str, count: int = 1) -> DeviceRequest:
    selector = f"device.attributes['{DRIVER}'].type == '{kind}'"
    return request(count=count, selectors=(selector,))


class TestPartitions:
    def test_a_part_and_its_whole_exclude_each_other(self) -> None:
        scene = stage()
        scene.put(*mig_slices(), *(wants(name, of_type("mig")) for name in "ab"))
        scene.put(wants("w", of_type("gpu")))
        assert names(submit(scene, "g", ("a",), ("b",))) == [[("r", "gpu-1")], [("r", "gpu-2")]]
        assert submit(scene, "h", ("w",)) == []
        assert "counter slices of gpu-0 is used up" in sentence(scene, "h")

    def test_a_whole_that_a_claim_has_leaves_no_part(self) -> None:
        scene = stage()
        theirs = ((DRIVER, "n0", "gpu-0"),)
        scene.put(*mig_slices(), wants("a", of_type("mig")))
        scene.put(make_device_claim("x", allocated=theirs, reserved_for=("foreign",)))
        assert submit(scene, "g", ("a",)) == []
        scene.remove(make_device_claim("x"))
        assert names(scene.settle()[0].devices) == [[("r", "gpu-1")]]

    def test_the_order_of_requests_does_not_matter(self) -> None:
        """The first request could take the whole, which leaves no part to the second."""
        scene = stage()
        scene.put(*mig_slices(), wants("c", request("any"), of_type("mig")))
        assert names(submit(scene, "g", ("c",))) == [[("any", "gpu-1"), ("r", "gpu-2")]]

    def test_devices_that_consume_unknown_counters_are_not_allocated(self) -> None:
        scene = stage()
        devices, _ = mig_slices()
        scene.put(devices, wants("c"))
        assert submit(scene, "g", ("c",)) == []


def eight_gpus() -> tuple[Any, Any]:
    """A node with eight GPUs as NVIDIA's driver publishes them, the last two also as 1g and 3g
    slices of their memory.
    """
    names: list[str] = []
    details: list[DeviceDetails] = []
    counters: list[Counters] = []

    def add(name: str, kind: str, gpu: int, slices: range) -> None:
        memory = tuple((f"memory-slice-{index}", "1") for index in slices)
        consumes = (Counters(counter_set=f"gpu-{gpu}", amounts=memory),) if gpu >= 6 else ()
        texts = {"type": kind, "parentUUID": f"GPU-{gpu}"}
        attributes = tuple(
            DeviceAttribute(name=f"{DRIVER}/{key}", value=value) for key, value in texts.items()
        )
        names.append(name)
        details.append(DeviceDetails(attributes=attributes, consumes=consumes))

    for gpu in range(8):
        add(f"gpu-{gpu}", "gpu", gpu, range(8))
        if gpu >= 6:
            memory = tuple((f"memory-slice-{index}", "1") for index in range(8))
            counters.append(Counters(counter_set=f"gpu-{gpu}", amounts=memory))
            for index in range(7):
                add(f"gpu-{gpu}-1g-{index}", "1g", gpu, range(index, index + 1))
            for index in (0, 4):
                add(f"gpu-{gpu}-3g-{index}", "3g", gpu, range(index, index + 4))
    devices = make_slice("n0", 0, names=tuple(names), details=tuple(details), pool_slices=2)
    return devices, make_slice(
        "n0", 0, shared_counters=tuple(counters), pool_slices=2, uid="counters", name="counters"
    )


class TestPartitionedNode:
    def test_a_gang_fills_the_whole_node_in_any_mixture_that_fits(self) -> None:
        scene = stage()
        scene.put(*eight_gpus())
        kinds = ("1g",) * 11 + ("3g",) + ("gpu",) * 6
        for index, kind in enumerate(kinds):
            scene.put(wants(f"c{index}", of_type(kind)))
        choices = submit(scene, "g", *((f"c{index}",) for index in range(len(kinds))))
        given = {one.devices[0][3] for one in choices}
        assert len(given) == len(kinds)
        scene.put(wants("d", of_type("3g")))
        assert submit(scene, "h", ("d",)) == []

    def test_slices_of_one_gpu_are_found_beside_others_in_use(self) -> None:
        scene = stage()
        scene.put(*eight_gpus(), wants("other", of_type("1g")))
        submit(scene, "g", ("other",))
        same = (DeviceConstraint(attribute=f"{DRIVER}/parentUUID"),)
        scene.put(wants("c", of_type("1g", 7), constraints=same))
        (choice,) = submit(scene, "h", ("c",))
        assert {device.rpartition("-1g-")[0] for _, _, _, device in choice.devices} == {"gpu-7"}
        scene.put(wants("d", of_type("1g", 7), constraints=same))
        assert submit(scene, "i", ("d",)) == []


def nic(*names: str) -> tuple[DeviceDetails, ...]:
    policy = CapacityPolicy(name="bandwidth", value="10", default="4", minimum="2", step="2")
    return tuple(
        DeviceDetails(shareable=True, policies=(policy,), capacity=((f"{DRIVER}/bandwidth", "10"),))
        for _ in names
    )


class TestCapacity:
    def test_claims_share_a_device_up_to_its_capacity(self) -> None:
        scene = stage()
        scene.put(make_slice("n0", 1, details=nic("gpu-0")))
        scene.put(wants("a", request(capacity=(("bandwidth", "5"),))))
        scene.put(*(wants(name) for name in "bc"))
        choices = submit(scene, "g", ("a",), ("b",))
        consumed = {one.claim: one.shares[0].capacity for one in choices}
        assert consumed == {"a": (("bandwidth", "6"),), "b": (("bandwidth", "4"),)}
        assert submit(scene, "h", ("c",)) == []

    def test_what_claims_have_in_the_cluster_is_taken(self) -> None:
        scene = stage()
        scene.put(make_slice("n0", 1, details=nic("gpu-0")))
        part = SharedDevice(
            driver=DRIVER, pool="n0", device="gpu-0", capacity=(("bandwidth", "8"),)
        )
        scene.put(make_device_claim("x", has_allocation=True, shares=(part,)), wants("c"))
        assert submit(scene, "g", ("c",)) == []
        scene.put(wants("d", request(capacity=(("bandwidth", "2"),))))
        assert names(submit(scene, "h", ("d",))) == [[("r", "gpu-0")]]

    def test_an_ordinary_device_has_at_least_the_requested_capacity(self) -> None:
        scene = stage()
        sizes = tuple(
            DeviceDetails(capacity=((f"{DRIVER}/memory", one),)) for one in ("20Gi", "80Gi")
        )
        scene.put(make_slice("n0", 2, details=sizes))
        scene.put(wants("c", request(capacity=(("memory", "40Gi"),))))
        (choice,) = submit(scene, "g", ("c",))
        assert (names([choice]), choice.shares) == ([[("r", "gpu-1")]], ())


class TestGang:
    @pytest.mark.parametrize("order", [("any", "odd"), ("odd", "any")])
    def test_a_member_does_not_keep_the_only_device_of_another_one(
        self, order: tuple[str, str]
    ) -> None:
        """Both fit on the only node, with the devices that the first one would not take first."""
        scene = stage()
        scene.put(make_slice("n0", 2, details=numa(1, 0)))
        odd = request(selectors=(f"device.attributes['{DRIVER}'].numa == 1",))
        scene.put(wants("any"), wants("odd", odd))
        choices = submit(scene, "g", *((name,) for name in order))
        assert {one.claim: one.devices[0][3] for one in choices} == {"odd": "gpu-0", "any": "gpu-1"}

    def test_devices_of_an_earlier_decision_stay(self) -> None:
        scene = stage()
        scene.put(make_slice("n0", 2, details=numa(1, 0)), wants("any"))
        assert names(submit(scene, "g", ("any",))) == [[("r", "gpu-0")]]
        odd = request(selectors=(f"device.attributes['{DRIVER}'].numa == 1",))
        scene.put(wants("odd", odd))
        assert submit(scene, "h", ("odd",)) == []


class TestBindingConditions:
    def test_devices_with_conditions_are_chosen_last_and_their_conditions_are_in_the_decision(
        self,
    ) -> None:
        scene = stage()
        fabric = DeviceDetails(
            binding_conditions=("Attached",),
            binding_failure_conditions=("Broken",),
            binds_to_node=True,
        )
        scene.put(make_slice("n0", 2, details=(fabric, DeviceDetails())), wants("c"), wants("d"))
        (plain,) = submit(scene, "g", ("c",))
        assert (names([plain]), plain.conditions) == ([[("r", "gpu-1")]], ())
        (choice,) = submit(scene, "h", ("d",))
        assert names([choice]) == [[("r", "gpu-0")]]
        assert choice.conditions == (
            DeviceConditions(index=0, binding=("Attached",), failure=("Broken",)),
        )
        assert choice.node_affinity is None

    def test_a_decision_that_waits_for_them_is_not_in_flight(self) -> None:
        scene = stage()
        details = (DeviceDetails(binding_conditions=("Attached",)),)
        scene.put(make_slice("n0", 1, details=details), wants("c"))
        assert submit(scene, "g", ("c",))
        assert scene.planner.pods_in_flight == 0

    def test_a_device_of_the_network_that_binds_to_a_node_is_used_there_only(self) -> None:
        scene = stage("n0", "n1")
        details = (DeviceDetails(binding_conditions=("Attached",), binds_to_node=True),)
        scene.put(make_slice("any", 1, node="", all_nodes=True, details=details), wants("c"))
        (choice,) = submit(scene, "g", ("c",))
        assert choice.node_affinity is None


def test_classes_with_configuration_are_named_for_the_binder() -> None:
    scene = stage()
    configured = DeviceClass(
        uid="c", name="gpu-c", resource_version=1, driver=DRIVER, configured=True
    )
    scene.put(make_slice("n0", 2), configured)
    scene.put(wants("c", request("a"), request("b", device_class="gpu-c")))
    (choice,) = submit(scene, "g", ("c",))
    assert choice.classes == ("gpu-c",)

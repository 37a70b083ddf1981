"""What the CEL selectors of one namespace's claims may cost: counted characters and steps."""

import random
from collections import Counter

import msgspec
import pytest

from services.gang_planner.core.state.devices.selection import (
    CLAIM_CHARACTERS_MAX,
    NAMESPACE_RESULTS_MAX,
    RESULTS_MAX,
    DeviceRequirement,
    NamespaceCache,
    Selection,
)
from services.gang_planner.core.state.devices.selector_limits import (
    NAMESPACE_CHARACTERS_MAX,
    REQUEST_CHARACTERS_MIN,
    WAITS,
    SelectorLimits,
)
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.cel.device import (
    USERS_STEPS_AT_FIRST,
    USERS_STEPS_PER_DEVICE,
    Profile,
    Selector,
)
from shared.model.devices import DeviceAttribute, DeviceDetails, DeviceRequest, ResourceClaim
from tests.services.gang_planner.core.scene import Scene, make_group, make_pods, make_shape
from tests.services.gang_planner.core.test_device_selectors import (
    CLASSES,
    GPU,
    LARGE,
    request,
    stage,
    wants,
)
from tests.services.gang_planner.core.test_devices import condition, members
from tests.support.reachable import largest, reachable

LONG = " || ".join(f"device.driver == 'd{number}'" for number in range(400))
DEVICES = 800


def own(namespace: str, *selectors: str) -> DeviceRequirement:
    """What a claim of the namespace requires."""
    return DeviceRequirement(None, selectors, len(selectors), namespace)


def compiled(scene: Scene) -> int:
    """Characters of selectors compiled so far."""
    return scene.state.node_capacity.devices.inventory().selection.compiled


def put_gang(scene: Scene, name: str, *requests: DeviceRequest) -> None:
    """A gang of one member with a claim of these requests."""
    scene.put(wants(f"c-{name}", *requests))
    scene.put(make_group(name, 1), *members(name, [(f"c-{name}",)]))


def test_a_claim_with_too_many_selectors_waits_with_field_and_rule_and_costs_nothing() -> None:
    scene = stage()
    requests = [
        request(f"r{number}", GPU, *(f"{number} == {other} || {LONG[:9_000]}'" for other in (1, 2)))
        for number in range(32)
    ]
    put_gang(scene, "hostile", *requests)
    put_gang(scene, "plain", request("r", GPU, LARGE))
    (decision,) = scene.settle()
    assert decision.gang_id == "group-plain"
    reason, sentence = condition(scene, "hostile")
    assert reason == "UnsupportedDevice"
    assert "spec.devices.requests: its different CEL selectors have " in sentence
    assert f"evaluates at most {CLAIM_CHARACTERS_MAX}" in sentence
    assert compiled(scene) <= sum(map(len, CLASSES.values())) + len(LARGE)


@pytest.mark.parametrize("more", [0, 1])
def test_selectors_are_evaluated_up_to_the_bound_and_equal_ones_count_once(more: int) -> None:
    scene = stage()
    selector = f"{LARGE} || '{'x' * CLAIM_CHARACTERS_MAX}' == ''"
    selector = selector.replace("x" * (len(selector) - CLAIM_CHARACTERS_MAX - more), "", 1)
    assert len(selector) == CLAIM_CHARACTERS_MAX + more
    put_gang(scene, "g", request("a", GPU, selector), request("b", GPU, selector))
    assert bool(scene.settle()) == (more == 0)


def test_alternatives_of_a_request_count_too() -> None:
    scene = stage()
    long = [f"{number} == 0 || {LONG[:600]}'" for number in range(2)]
    alternatives = tuple(request(f"s{number}", GPU, one) for number, one in enumerate(long))
    put_gang(scene, "g", DeviceRequest(name="r", device_class="", alternatives=alternatives))
    assert not scene.settle()
    assert condition(scene, "g")[0] == "UnsupportedDevice"


def test_selectors_of_one_namespace_push_no_others_out() -> None:
    selection = Selection()
    plain = own("plain", LARGE)
    of_class = DeviceRequirement(None, (CLASSES[GPU],))
    for one in (plain, of_class):
        assert not selection.objection(one)
    for number in range(2 * RESULTS_MAX):
        selection.objection(own("hostile", f"{number}==0"))
    before = selection.compiled
    for one in (plain, of_class):
        selection.objection(one)
    assert selection.compiled == before
    selection.objection(own("hostile", f"{2 * RESULTS_MAX - 1}==0"))
    assert selection.compiled == before, "its newest are cached"
    selection.objection(own("hostile", "0==0"))
    assert selection.compiled > before, "its oldest are not"


class Result:
    """What was made for one key of a namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace


def test_a_cache_has_bounds_and_the_fullest_namespace_gives_way() -> None:
    cache: NamespaceCache[int, Result] = NamespaceCache()
    made: list[tuple[str, int]] = []

    def find(namespace: str, key: int) -> None:
        def make() -> Result:
            made.append((namespace, key))
            return Result(namespace)

        cache.find(namespace, key, make)

    def kept() -> Counter[str]:
        return Counter(result.namespace for result in reachable(cache, Result))

    find("plain", 0)
    for namespace in "abcdefgh":
        for key in range(2 * NAMESPACE_RESULTS_MAX):
            find(namespace, key)
            find("plain", 0)
    assert made.count(("plain", 0)) == 1
    assert kept().total() == RESULTS_MAX
    assert max(kept().values()) <= NAMESPACE_RESULTS_MAX
    for number in range(2 * RESULTS_MAX):
        find(f"n{number}", 0)
    assert kept().total() == RESULTS_MAX
    assert largest(cache) <= RESULTS_MAX, "no namespace without a result is kept"


def test_the_steps_of_all_selectors_of_a_claim_are_bounded() -> None:
    """Each reads what differs on every device, and has a loop."""
    count, steps = 16, 0
    for number in range(count):
        text = f"device.attributes.d.u!=''&&lists.range({number + 900}).all(x,x>=0)"
        assert len(text) * count <= CLAIM_CHARACTERS_MAX
        selector = Selector(text, of_user=True)
        for index in range(DEVICES):
            attributes = (DeviceAttribute(name="d/u", value=f"GPU-{index}"),)
            selector.outcome(Profile("d", DeviceDetails(attributes=attributes)))
        steps += selector.steps
    most = CLAIM_CHARACTERS_MAX * (USERS_STEPS_AT_FIRST + USERS_STEPS_PER_DEVICE * DEVICES)
    assert steps <= most


def test_a_users_selector_without_loops_has_enough_steps_for_devices_that_all_differ() -> None:
    text = "device.attributes['d'].u.startsWith('GPU') && device.driver == 'd' && 1 + 1 == 2"
    selector = Selector(text, of_user=True)
    for index in range(DEVICES):
        attributes = (DeviceAttribute(name="d/u", value=f"GPU-{index}"),)
        assert selector.outcome(Profile("d", DeviceDetails(attributes=attributes))).matches
    assert selector.evaluations == DEVICES


def test_the_same_claims_get_the_same_decisions() -> None:
    found: list[bytes] = []
    for _ in range(2):
        scene = stage()
        put_gang(scene, "long", request("r", GPU, LONG[:9_000] + "'"))
        put_gang(scene, "plain", request("r", GPU, LARGE))
        found.append(msgspec.msgpack.encode(scene.settle()))
    assert found[0] == found[1]


def put_in(scene: Scene, namespace: str, name: str, *selectors: str) -> ResourceClaim:
    """A gang of one member with a claim of one request with these selectors."""
    claim = ResourceClaim(
        uid=f"rc-{name}",
        namespace=namespace,
        name=f"c-{name}",
        resource_version=1,
        requests=(request("r", GPU, *selectors),),
    )
    shape = make_shape({}, device_claims=(claim.name,), namespace=namespace)
    scene.put(claim, make_group(name, 1, namespace=namespace))
    scene.put(*make_pods(name, 1, shape, namespace=namespace))
    return claim


def none_of(number: int, length: int = REQUEST_CHARACTERS_MIN) -> str:
    """A selector of this length that no device matches."""
    return f"'{number:08d}' == '{'x' * (length - 16)}'"


def test_thousands_of_claims_of_one_namespace_cost_others_no_more_than_a_few() -> None:
    scene = stage()
    put_in(scene, "plain", "first", LARGE)
    scene.settle()
    before = compiled(scene)
    for number in range(300):
        put_in(scene, "hostile", f"h{number:04d}", none_of(number, 1_000))
    put_in(scene, "plain", "late", LARGE)
    decided = [one.gang_id for one in scene.settle()]
    assert decided == ["group-late"]
    assert compiled(scene) - before <= NAMESPACE_CHARACTERS_MAX
    reason, sentence = condition(scene, "h0299")
    assert reason == "NotEnoughResources"
    assert f'resourceclaim "c-h0299" waits: {WAITS}' in sentence
    assert WAITS not in condition(scene, "h0000")[1]


def test_claims_that_wait_for_others_are_evaluated_when_these_have_devices_or_are_gone() -> None:
    scene = stage()
    first = [
        put_in(scene, "team", f"a{number:02d}", none_of(number, 80))
        for number in range(NAMESPACE_CHARACTERS_MAX // 80)
    ]
    put_in(scene, "team", "b", LARGE)
    assert scene.settle() == []
    # Equal selectors count once, and claims of other namespaces are not counted.
    put_in(scene, "team", "c", none_of(0, 80))
    put_in(scene, "other", "d", LARGE)
    assert [one.gang_id for one in scene.settle()] == ["group-d"]
    assert WAITS not in condition(scene, "c")[1]
    scene.put(msgspec.structs.replace(first[3], resource_version=2, has_allocation=True))
    assert {one.gang_id for one in scene.settle()} == {"group-a03", "group-b"}
    put_in(scene, "team", "e", f" {LARGE}")
    assert scene.settle() == []
    scene.remove(first[4])
    assert [one.gang_id for one in scene.settle()] == ["group-e"]


def test_many_claims_with_the_selectors_of_one_template_wait_for_nothing() -> None:
    scene = stage()
    for number in range(100):
        put_in(scene, "team", f"g{number:02d}", LARGE)
    # As many as there are devices.
    assert len(scene.settle()) == 3


@pytest.mark.parametrize("seed", range(20))
def test_the_claims_that_wait_follow_from_those_that_exist(seed: int) -> None:
    randomly = random.Random(seed)
    tables = ReferenceObjects()
    limits = SelectorLimits(tables)
    for version in range(1, 201):
        uid = f"uid-{randomly.randrange(12)}"
        if randomly.random() < 0.3:
            tables.remove(uid)
        else:
            texts = randomly.choices(range(6), k=randomly.randrange(3))
            selectors = tuple(none_of(one, 64 + 200 * one) for one in texts)
            claim = ResourceClaim(
                uid=uid,
                namespace=f"n{int(uid[4:]) % 2}",
                name=f"name-{uid}",
                resource_version=version,
                requests=(request("r", GPU, *selectors),),
                has_allocation=randomly.random() < 0.2,
            )
            tables.put(claim, from_snapshot=False)
        if randomly.random() < 0.5:
            assert limits.waiting() == SelectorLimits(tables).waiting()
    for number in range(12):
        tables.remove(f"uid-{number}")
    assert not limits.waiting()
    assert not {"n0", "n1"} & set(reachable(limits, str))

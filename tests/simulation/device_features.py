"""What the devices of the simulated cluster are, and what claims can request of them: constraints,
alternatives, and partitions that share counters with their whole device.

The drivers publish from this table and the checkers judge by it. Neither asks Tutti or CEL what a
selector matches.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from tests.simulation.kube_server import Obj

DEVICE_CLASS: Final = "gpu"
DEVICE_DRIVER: Final = "gpu.simulated"
#: Class and driver of the device with parts, and what each has: the largest parts of two pods.
PARTS_CLASS: Final = "part"
PARTS_DRIVER: Final = "part.simulated"
PARTS_GIB: Final = 8
#: Network interfaces, at the same PCIe roots as the GPUs.
NIC_CLASS: Final = "nic"
NIC_DRIVER: Final = "nic.simulated"
#: GPUs that can be had whole or in parts.
SPLIT_CLASS: Final = "split"
SPLIT_DRIVER: Final = "split.simulated"
#: Two members of a gang always find two each.
PER_NODE: Final = 4

NUMA: Final = f"{DEVICE_DRIVER}/numa"
ROOT: Final = "resource.kubernetes.io/pcieRoot"
_SLICES: Final = f"{SPLIT_DRIVER}/slices"
_SPLIT_GPUS: Final = ("split-0", "split-1")
#: What each split GPU has for its partitions.
COUNTERS: Final = {"slices": 4, "memory": 80}
#: Partitions of a split GPU, and what each consumes. All together are more than there is.
_PARTITIONS: Final = {
    "whole": {"slices": 4, "memory": 80},
    "half-0": {"slices": 2, "memory": 40},
    "half-1": {"slices": 2, "memory": 40},
    "quarter-0": {"slices": 1, "memory": 20},
    "quarter-1": {"slices": 1, "memory": 20},
}
#: Alternatives of so many GPUs of one NUMA node.
_AT_ONE_NODE: Final = {"pair": 2, "three": 3}
_SELECTOR: Final = f'device.attributes["{SPLIT_DRIVER}"].slices == '
_DRIVERS: Final = {
    DEVICE_CLASS: DEVICE_DRIVER,
    PARTS_CLASS: PARTS_DRIVER,
    NIC_CLASS: NIC_DRIVER,
    SPLIT_CLASS: SPLIT_DRIVER,
}
BROKEN: Final = {"key": "broken", "effect": "NoSchedule"}


class Device(msgspec.Struct, frozen=True):
    """A device of one node."""

    driver: str
    name: str
    #: By qualified name.
    attributes: dict[str, int | str] = {}
    #: The set of counters that it consumes ("": none), and how much of each.
    counter_set: str = ""
    consumes: dict[str, int] = {}


def devices_of_node(node: str) -> list[Device]:
    """Every device that a node ever has; nodes differ in which GPUs are at one NUMA node."""
    number = int(node.rpartition("-")[2])
    numa: Callable[[int], int] = (lambda at: at // 2) if number % 2 else (lambda at: at % 2)
    found = [Device(PARTS_DRIVER, "whole")]
    for at in range(PER_NODE):
        there: dict[str, int | str] = {NUMA: numa(at), ROOT: f"pci{numa(at)}"}
        found.append(Device(DEVICE_DRIVER, f"gpu-{at}", there))
        found.append(Device(NIC_DRIVER, f"nic-{at}", {ROOT: f"pci{at % 2}"}))
    for gpu in _SPLIT_GPUS:
        for name, consumes in _PARTITIONS.items():
            size: dict[str, int | str] = {_SLICES: consumes["slices"]}
            found.append(Device(SPLIT_DRIVER, f"{gpu}-{name}", size, gpu, consumes))
    return found


def device_named(pool: str, name: str) -> Device | None:
    """A device by its pool, which is named after its node, and its name, which no two drivers
    use.
    """
    return next((one for one in devices_of_node(pool) if one.name == name), None)


# ---- what drivers publish


def manifest(device: Device, *, taints: list[Obj]) -> Obj:
    """The device in a ResourceSlice."""
    found: Obj = {"name": device.name, "attributes": dict(_published(device))}
    if device.consumes:
        counters = _counters(device.consumes)
        found["consumesCounters"] = [{"counterSet": device.counter_set, "counters": counters}]
    if taints:
        found["taints"] = taints
    return found


def _published(device: Device) -> Iterator[tuple[str, Obj]]:
    for name, value in device.attributes.items():
        yield (
            name.removeprefix(f"{device.driver}/"),
            {"int": value} if isinstance(value, int) else {"string": value},
        )


def counter_sets() -> list[Obj]:
    """The counters of the split GPUs of one node."""
    return [{"name": gpu, "counters": _counters(COUNTERS)} for gpu in _SPLIT_GPUS]


def _counters(amounts: dict[str, int]) -> Obj:
    return {name: {"value": str(amount)} for name, amount in amounts.items()}


# ---- what claims request


def device_request(number: int) -> Obj:
    """A request for so many whole devices."""
    return {"deviceClassName": DEVICE_CLASS, "count": number}


def part_request(gib: int) -> Obj:
    """A request for a part of a device."""
    return {"deviceClassName": PARTS_CLASS, "capacity": {"requests": {"memory": f"{gib}Gi"}}}


def _partition(slices: int) -> Obj:
    """A request for a split GPU, or a partition, of that size."""
    selector = {"cel": {"expression": f"{_SELECTOR}{slices}"}}
    return {"deviceClassName": SPLIT_CLASS, "selectors": [selector], "count": 1}


def claim_devices(kind: str, number: int) -> Obj:
    """`spec.devices` of a claim of that kind (`claims.Kind`)."""
    match kind:
        case "parts":
            return {"requests": [_exactly("gpus", part_request(number))]}
        case "matched":
            return _constrained([_exactly("gpus", device_request(2))], matchAttribute=NUMA)
        case "apart" if number == 1:
            return _constrained([_exactly("gpus", device_request(2))], distinctAttribute=NUMA)
        case "apart":
            # Two requests, of which the second takes devices that are known to be broken.
            tolerant = {**device_request(1), "tolerations": [{"key": "broken"}]}
            tolerant["tolerations"][0]["operator"] = "Exists"
            requests = [_exactly("first", device_request(1)), _exactly("second", tolerant)]
            return _constrained(requests, distinctAttribute=NUMA)
        case "beside":
            nic = {"deviceClassName": NIC_CLASS, "count": 1}
            requests = [_exactly("gpu", device_request(1)), _exactly("nic", nic)]
            return _constrained(requests, matchAttribute=ROOT)
        case "partition":
            return {"requests": [_exactly("gpus", _partition(number))]}
        case "alternatives" | "shared_alternatives":
            return _alternatives(number)
        case _:
            return {"requests": [_exactly("gpus", device_request(number))]}


def _alternatives(number: int) -> Obj:
    """The first of a whole split GPU, half of one, and two GPUs of one NUMA node; in some claims
    three of one NUMA node before these, which no node has. The constraints are for the GPUs only:
    partitions have no such attribute.
    """
    pair, three = ({"name": name, **device_request(of)} for name, of in _AT_ONE_NODE.items())
    whole, half = ({"name": f"of-{size}", **_partition(size)} for size in (4, 2))
    listed = [[whole, pair, half], [half, pair], [three, pair, half]][number % 3]
    names = [f"gpus/{one['name']}" for one in listed]
    constraints = [
        {"matchAttribute": NUMA, "requests": [name]}
        for name in names
        if name.partition("/")[2] in _AT_ONE_NODE
    ]
    return {"requests": [{"name": "gpus", "firstAvailable": listed}], "constraints": constraints}


def _exactly(name: str, request: Obj) -> Obj:
    return {"name": name, "exactly": request}


def _constrained(requests: list[Obj], **constraint: str) -> Obj:
    names = [one["name"] for one in requests]
    return {"requests": requests, "constraints": [{**constraint, "requests": names}]}


# ---- what a request means


def matches(request: Obj, device: Device) -> bool:
    """Whether class and selectors of a request or subrequest match the device."""
    if _DRIVERS.get(request["deviceClassName"]) != device.driver:
        return False
    for selector in request.get("selectors") or ():
        before, size = selector["cel"]["expression"].split("== ")
        assert f"{before}== " == _SELECTOR, "a selector that the table does not have"
        if device.attributes.get(_SLICES) != int(size):
            return False
    return True


def tolerates_broken(request: Obj) -> bool:
    """Whether the request tolerates the taint of the simulation."""
    return any(one.get("key") == BROKEN["key"] for one in request.get("tolerations") or ())

"""Selectors read devices as kube-scheduler's do."""

import pytest

from shared.cel import device
from shared.cel.device import Outcome, Profile, Selector
from shared.model.devices import (
    DeviceAttribute,
    DeviceDetails,
)

DRIVER = "gpu.nvidia.com"


def gpu(uuid: str = "GPU-1", *, memory: str = "80Gi", kind: str = "gpu") -> Profile:
    """A device as NVIDIA's driver publishes it."""
    texts = {"type": kind, "uuid": uuid, "productName": "NVIDIA H100 80GB HBM3"}
    attributes = [
        DeviceAttribute(name=f"{DRIVER}/{name}", value=one) for name, one in texts.items()
    ]
    attributes += [
        DeviceAttribute(name=f"{DRIVER}/index", value=3),
        DeviceAttribute(name=f"{DRIVER}/ready", value=True),
        DeviceAttribute(name=f"{DRIVER}/names", value=("a", "b")),
        DeviceAttribute(name=f"{DRIVER}/driverVersion", value="550.54.15", version=True),
        DeviceAttribute(name="resource.kubernetes.io/pcieRoot", value="pci0000:01"),
    ]
    capacity = ((f"{DRIVER}/memory", memory),)
    return Profile(DRIVER, DeviceDetails(attributes=tuple(attributes), capacity=capacity))


@pytest.mark.parametrize(
    ("expression", "outcome"),
    [
        (f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'", True),
        (f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'mig'", False),
        (f"device.attributes['{DRIVER}'].productName == 'NVIDIA H100 80GB HBM3'", True),
        (f"device.attributes['{DRIVER}'].productName.lowerAscii().matches('h100')", True),
        (f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0", True),
        (f"device.capacity['{DRIVER}'].memory.isGreaterThan(quantity('80Gi'))", False),
        (f"device.attributes['{DRIVER}'].driverVersion.isGreaterThan(semver('550.0.0'))", True),
        (f"device.attributes['{DRIVER}']['ready']", True),
        (f"device.attributes['{DRIVER}'].index in [1, 3]", True),
        (f"device.attributes['{DRIVER}'].names.exists(name, name == 'b')", True),
        (f"cel.bind(own, device.attributes['{DRIVER}'], own.ready && own.index > 2)", True),
        ("device.attributes['resource.kubernetes.io'].pcieRoot.startsWith('pci')", True),
        ("device.allowMultipleAllocations", False),
        ("has(device.attributes['other'].x)", False),
        ("'other' in device.attributes", False),
        (f"'{DRIVER}' in device.attributes", True),
        ("device.attributes['other'].size() == 0", True),
        (f"!('x' in device.capacity['{DRIVER}'])", True),
    ],
)
def test_a_selector_matches_or_does_not(expression: str, outcome: bool) -> None:
    assert Selector(expression).outcome(gpu()) == Outcome(outcome)


@pytest.mark.parametrize(
    ("expression", "cause"),
    [
        ("device.attributes['other'].x", "no such key: x"),
        (f"device.attributes['{DRIVER}'].index", "the result is of type int, not bool"),
        (f"device.attributes['{DRIVER}'].index.startsWith('3')", "no such overload"),
        (f"device.attributes['{DRIVER}'].index.exists(x, true)", "expected iterable type"),
        ("lists.range(1000000).all(x, true)", "it takes more than 20000 steps"),
    ],
)
def test_a_selector_that_fails_does_not_match_and_has_a_cause(expression: str, cause: str) -> None:
    found = Selector(expression).outcome(gpu())
    assert not found.matches
    assert cause in found.failure


def test_a_device_with_an_invalid_value_matches_nothing() -> None:
    broken = Profile(DRIVER, DeviceDetails(capacity=((f"{DRIVER}/memory", "much"),)))
    found = Selector("true").outcome(broken)
    assert not found.matches
    assert "'much' is no quantity" in found.failure


def test_a_selector_is_evaluated_once_for_devices_that_differ_only_in_what_it_does_not_read() -> (
    None
):
    selector = Selector(
        f"device.attributes['{DRIVER}'].type == 'gpu' && "
        f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"
    )
    found = [selector.outcome(gpu(f"GPU-{index}", memory="80Gi")) for index in range(50)]
    found += [selector.outcome(gpu(f"GPU-{index}", memory="20Gi")) for index in range(50)]
    found += [selector.outcome(gpu(f"GPU-{index}", kind="mig")) for index in range(50)]
    assert [one.matches for one in found] == [True] * 50 + [False] * 100
    assert selector.evaluations == 3


def test_true_and_one_are_different_values() -> None:
    selector = Selector("device.attributes['d'].x == 1")
    whole, truth = (
        Profile("d", DeviceDetails(attributes=(DeviceAttribute(name="d/x", value=value),)))
        for value in (1, True)
    )
    assert selector.outcome(whole).matches
    assert not selector.outcome(truth).matches


def test_a_selector_that_is_expensive_on_every_device_gets_no_further_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device, "STEPS_AT_FIRST_MAX", 6_000)
    selector = Selector(
        f"device.attributes['{DRIVER}'].uuid != '' && lists.range(900).all(x, x >= 0)"
    )
    found = [selector.outcome(gpu(f"GPU-{index}")) for index in range(4)]
    assert found[0].matches
    assert "steps" in found[-1].failure

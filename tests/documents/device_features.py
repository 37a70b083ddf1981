"""The table of docs/devices.md: what claims for devices can request, since which Kubernetes, and
the tests that prove Tutti's support.

The versions are those of the feature gates in Kubernetes' own source: alpha (off), beta (on unless
stated) and GA.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.documents.reference import table_of

ROOT: Final = Path(__file__).parents[2]
_PLANNER: Final = "tests/services/gang_planner/core/test_device_requests.py"
_EXTENDED: Final = "tests/services/gang_planner/core/test_extended_resources.py"
_SELECTORS: Final = "tests/services/gang_planner/core/test_device_selectors.py"
_ALLOCATION: Final = "tests/services/binder/core/test_device_allocation.py"
#: Functions that draw the feature's part of a world, for the comparison with kube-scheduler.
_WORLDS: Final = "tests/oracle/device_features.py"


class DeviceFeature(NamedTuple):
    """One feature of dynamic resource allocation."""

    title: str
    #: The fields that users or drivers set.
    fields: str
    gate: str
    #: Minor by stage.
    since: str
    #: What works, or what happens instead.
    support: str
    #: "path::class or function" of the proofs; (): it is not supported.
    proofs: tuple[str, ...] = ()


FEATURES: Final = (
    DeviceFeature(
        "a number of devices, CEL selectors of class and request",
        "`exactly.count`, `selectors`",
        "DynamicResourceAllocation",
        "GA 1.34",
        "yes; [functions of CEL](adr/0077-device-selectors-are-evaluated-in-the-planner.md"
        "#consequences)",
        (
            f"{_SELECTORS}::test_members_get_devices_that_class_and_request_select",
            f"{_WORLDS}::_exactly",
        ),
    ),
    DeviceFeature(
        "all devices of the node",
        "`allocationMode: All`",
        "DynamicResourceAllocation",
        "GA 1.34",
        "yes",
        (f"{_PLANNER}::TestAll", f"{_WORLDS}::_exactly"),
    ),
    DeviceFeature(
        "constraints",
        "`constraints[].matchAttribute`",
        "DynamicResourceAllocation",
        "GA 1.34",
        "yes",
        (f"{_PLANNER}::TestConstraints", f"{_WORLDS}::_constraints"),
    ),
    DeviceFeature(
        "configuration of class and claim",
        "`config[].opaque`",
        "DynamicResourceAllocation",
        "GA 1.34",
        "yes",
        (
            f"{_ALLOCATION}::test_configuration_of_class_and_claim_comes_with_the_devices_that_it_is_for",
            "tests/services/binder/test_claims.py"
            "::test_an_allocation_has_everything_that_class_and_claim_ask_for",
        ),
    ),
    DeviceFeature(
        "devices on the network",
        "`nodeSelector`, `allNodes` of slices",
        "DynamicResourceAllocation",
        "GA 1.34",
        "yes",
        (f"{_PLANNER}::TestNetwork", f"{_WORLDS}::_network"),
    ),
    DeviceFeature(
        "admin access",
        "`adminAccess`",
        "DRAAdminAccess",
        "alpha 1.32, beta 1.34, GA 1.36",
        "yes, in namespaces with the label",
        (f"{_PLANNER}::TestAdminAccess", f"{_WORLDS}::_exactly"),
    ),
    DeviceFeature(
        "alternatives",
        "`firstAvailable`",
        "DRAPrioritizedList",
        "alpha 1.33, beta 1.34, GA 1.36",
        "yes; nodes on which earlier alternatives are available are preferred",
        (f"{_PLANNER}::TestFirstAvailable", f"{_WORLDS}::_request"),
    ),
    DeviceFeature(
        "taints and tolerations of devices",
        "`taints` of slices, `tolerations`",
        "DRADeviceTaints",
        "alpha 1.33, beta 1.36",
        "yes",
        (f"{_PLANNER}::TestTaints", f"{_WORLDS}::_device"),
    ),
    DeviceFeature(
        "partitionable devices, and nodes of each device",
        "`sharedCounters`, `consumesCounters`, `perDeviceNodeSelection`",
        "DRAPartitionableDevices",
        "alpha 1.33, beta 1.36",
        "yes",
        (f"{_PLANNER}::TestPartitions", f"{_WORLDS}::_partitions"),
    ),
    DeviceFeature(
        "consumable capacity",
        "`allowMultipleAllocations`, `requestPolicy`, `capacity.requests`",
        "DRAConsumableCapacity",
        "alpha 1.34, beta 1.36",
        "yes",
        (f"{_PLANNER}::TestCapacity", f"{_WORLDS}::_shared"),
    ),
    DeviceFeature(
        "distinct attributes",
        "`constraints[].distinctAttribute`",
        "DRAConsumableCapacity",
        "alpha 1.34, beta 1.36",
        "yes, for all devices of a request",
        (f"{_PLANNER}::TestConstraints", f"{_WORLDS}::_constraints"),
    ),
    DeviceFeature(
        "attributes with several values",
        "`ints`, `strings`, …",
        "DRAListTypeAttributes",
        "alpha 1.36",
        "in selectors; constraints compare them as sets, without a comparison with kube-scheduler",
        (f"{_PLANNER}::TestConstraints",),
    ),
    DeviceFeature(
        "taint rules",
        "DeviceTaintRule",
        "DRADeviceTaintRules",
        "alpha 1.35 (1.33 with DRADeviceTaints), beta 1.36 (off)",
        "yes",
        (f"{_PLANNER}::TestTaints", f"{_WORLDS}::_rule"),
    ),
    DeviceFeature(
        "binding conditions",
        "`bindingConditions`, `bindingFailureConditions`, `bindsToNode`",
        "DRADeviceBindingConditions",
        "alpha 1.34, beta 1.36",
        "yes; such devices are chosen last",
        (
            f"{_PLANNER}::TestBindingConditions",
            f"{_WORLDS}::_device",
            "tests/services/binder/test_claims.py"
            "::test_a_pod_waits_until_the_driver_reports_its_device_as_attached",
        ),
    ),
    DeviceFeature(
        "extended resources by DRA",
        "`extendedResourceName` of a class, `deviceclass.resource.kubernetes.io/<class>`",
        "DRAExtendedResource",
        "alpha 1.34, beta 1.36",
        "yes; [how](#extended-resources)",
        (
            f"{_EXTENDED}::TestPlacement",
            f"{_WORLDS}::mixed_cluster",
            "tests/services/binder/test_extended_claims.py"
            "::test_the_claim_is_made_allocated_reserved_and_named_by_the_pod",
        ),
    ),
    DeviceFeature(
        "claims of PodGroups",
        "`resourceClaims` of a PodGroup",
        "DRAWorkloadResourceClaims",
        "alpha 1.36",
        "yes, reserved for [the pods](adr/0081-one-bounded-search-chooses-devices.md)",
        (
            "tests/integration/test_kubernetes_groups.py"
            "::test_the_pods_of_a_group_share_the_devices_of_its_claim",
        ),
    ),
    DeviceFeature(
        "resources of nodes by devices",
        "`nodeAllocatableResourceMappings` of devices",
        "DRANodeAllocatableResources",
        "alpha 1.36",
        "no",
    ),
)


def device_features_table() -> str:
    """The table of docs/devices.md."""
    return table_of(("feature", "fields", "feature gate", "Kubernetes", "supported"), _rows())


def _rows() -> Iterator[tuple[str, ...]]:
    for one in FEATURES:
        yield one.title, one.fields, f"`{one.gate}`", one.since, one.support

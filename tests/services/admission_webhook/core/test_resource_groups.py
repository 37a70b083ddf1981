"""Resource groups: their members, what these get, and the answers to the API server."""

from typing import Any

import msgspec
import pytest

from services.admission_webhook.core.configurations import Address, configuration
from shared.admission.resource_groups import BadConfiguration, membership_expression, read_groups
from tests.services.admission_webhook.reviews import Object, a_pod, defaulted, reference_objects

AFFINITY: Object = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}
FILE: Object = {
    "resourceGroups": [
        {
            "resourceGroup": "lane",
            "object": {"key": "namespace", "value": ["team"]},
            "schedulerName": "volcano",
            "labels": {"lane": "batch"},
            "affinity": msgspec.json.encode(AFFINITY).decode(),
        },
        {
            "resourceGroup": "quick",
            "object": {"key": "annotation", "value": ["speed: quick"]},
            "schedulerName": "volcano",
        },
        {"resourceGroup": "named", "tolerations": [{"key": "a", "operator": "Exists"}]},
    ]
}


def changed(pod: Object, file: Object = FILE) -> Any:
    known = msgspec.structs.replace(reference_objects(), resource_groups=read_groups(file))
    return defaulted(pod, known)["spec"]


def test_a_group_gives_scheduler_selector_and_affinity() -> None:
    spec = changed(a_pod("default-scheduler"))
    assert (spec["schedulerName"], spec["nodeSelector"]) == ("volcano", {"lane": "batch"})
    assert spec["affinity"] == AFFINITY


def test_an_affinity_that_the_pod_has_is_kept() -> None:
    pod = a_pod("default-scheduler")
    pod["spec"]["affinity"] = {"podAffinity": {"x": []}}
    assert changed(pod)["affinity"] == {"podAffinity": {"x": []}}


def test_without_groups_no_pod_is_changed() -> None:
    assert changed(a_pod("tutti"), {}) == a_pod("tutti")["spec"]


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ({"resourceGroups": [{"object": {"key": "namespace"}}]}, "resourceGroup"),
        ({"resourceGroups": [{"resourceGroup": "x", "object": {"key": "label"}}]}, "key"),
        ({"resourceGroups": [{"resourceGroup": "x", "affinity": "{"}]}, "[0].affinity"),
        ([], "object"),
    ],
    ids=["no name", "unknown key", "no JSON", "no object"],
)
def test_a_file_that_makes_no_sense_is_refused_with_its_place(content: object, where: str) -> None:
    with pytest.raises(BadConfiguration) as refused:
        read_groups(content)
    assert where in str(refused.value)


def test_only_pods_of_groups_are_asked_about() -> None:
    expression = membership_expression(read_groups(FILE))
    assert expression == (
        'request.namespace in ["team"] || (has(object.metadata.annotations) && '
        '(("speed" in object.metadata.annotations && '
        'object.metadata.annotations["speed"] == "quick") || '
        '("volcano.sh/resource-group" in object.metadata.annotations && '
        'object.metadata.annotations["volcano.sh/resource-group"] == "named")))'
    )


def registered_kinds(groups: Object) -> list[str]:
    address = Address(url="https://127.0.0.1:1")
    made = configuration("mutate", {}, address, ("tutti",), groups=read_groups(groups))
    return [webhook["name"] for webhook in made["webhooks"]]


def test_pods_are_asked_about_only_where_there_are_groups() -> None:
    assert "mutate-pod.tutti.dev" in registered_kinds(FILE)
    assert "mutate-pod.tutti.dev" not in registered_kinds({})

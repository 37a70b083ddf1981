"""What lists can be narrowed to."""

import pytest

from tests.api_suite.client import Client
from tests.api_suite.objects import binding, config_map, pod

LABELS = {"a": {"team": "red", "tier": "1"}, "b": {"team": "blue"}, "c": {"tier": "2"}, "d": {}}


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("team=red", "a"),
        ("team==red", "a"),
        ("team!=red", "bcd"),
        ("team in (red, blue)", "ab"),
        ("team notin (red)", "bcd"),
        ("team", "ab"),
        ("!team", "cd"),
        ("team,tier", "a"),
        ("team in (red,blue),!tier", "b"),
        ("", "abcd"),
    ],
)
async def test_labels_select(api: Client, maps: str, selector: str, names: str) -> None:
    for name, labels in LABELS.items():
        await api.create(maps, config_map(name, labels=labels))
    assert await api.names(maps, labelSelector=selector) == list(names)


async def test_fields_select(api: Client, pods: str) -> None:
    await api.create(pods, pod("a", spec={"schedulerName": "mine"}))
    await api.create(pods, pod("b"))
    await api.create(pods, pod("c"))
    await api.create(f"{pods}/c/binding", binding("c", "node-x"))
    expected = {
        "metadata.name=a": "a",
        "metadata.name!=a": "bc",
        "spec.nodeName=": "ab",
        "spec.nodeName!=": "c",
        "spec.nodeName=node-x": "c",
        "spec.schedulerName=mine": "a",
        "status.phase=Pending,metadata.name=b": "b",
        "status.phase=Running": "",
    }
    for selector, names in expected.items():
        assert await api.names(pods, fieldSelector=selector) == list(names), selector


@pytest.mark.parametrize(
    "query",
    [{"labelSelector": "a b"}, {"labelSelector": "a in b"}, {"fieldSelector": "spec.priority=1"}],
    ids=str,
)
async def test_what_cannot_be_selected_by_is_refused(
    api: Client, pods: str, query: dict[str, str]
) -> None:
    refused = await api.get(pods, **query)
    assert (refused.status, refused.reason) == (400, "BadRequest")


async def test_a_list_over_all_namespaces_selects_by_namespace(
    api: Client, maps: str, ns: str
) -> None:
    await api.create(maps, config_map("one"))
    assert await api.names("/api/v1/configmaps", fieldSelector=f"metadata.namespace={ns}") in (
        ["one"],
        ["kube-root-ca.crt", "one"],
    )

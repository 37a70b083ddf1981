"""Definitions, and the objects they define."""

import pytest

from tests.api_suite.client import Client, Obj
from tests.api_suite.objects import DEFINITIONS, GROUP, crd, define, undefine
from tests.support.waiting import eventually

PLURAL = "things"
SCHEMA: Obj = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 0},
                "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "names": {"type": "object", "additionalProperties": {"type": "string"}},
                "amount": {"x-kubernetes-int-or-string": True},
                "items": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                },
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def thing(name: str = "one", **spec: object) -> Obj:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Things",
        "metadata": {"name": name},
        "spec": {"size": 1, **spec},
    }


@pytest.fixture
async def things(api: Client, ns: str) -> str:
    """The definition stays: the real server takes two seconds to serve one."""
    return await define(api, crd(PLURAL, schema=SCHEMA), ns)


async def test_a_definition_says_that_it_is_served(api: Client, things: str) -> None:
    definition = (await api.get(f"{DEFINITIONS}/{PLURAL}.{GROUP}")).body
    conditions = {item["type"]: item["status"] for item in definition["status"]["conditions"]}
    assert conditions["Established"] == conditions["NamesAccepted"] == "True"
    assert definition["status"]["storedVersions"] == ["v1"]
    rows = (await api.get(f"/apis/{GROUP}/v1")).body["resources"]
    assert {row["name"] for row in rows} == {"things", "things/status"}


async def test_defaults_are_filled_in_and_unknown_fields_dropped(api: Client, things: str) -> None:
    body = thing(other=1, free={"x": {"y": 1}}, names={"a": "b"}, items=[{"a": "1", "b": "2"}])
    answer = await api.call("POST", things, body)
    assert answer.status == 201
    assert answer.body["spec"] == {
        "size": 1,
        "color": "red",
        "free": {"x": {"y": 1}},
        "names": {"a": "b"},
        "items": [{"a": "1"}],
    }
    assert answer.body["metadata"]["generation"] == 1


async def test_nulls_are_left_out(api: Client, things: str) -> None:
    body = thing(color=None, names=None, items=[{"a": None}], amount=None)
    answer = await api.call("POST", things, body)
    assert answer.status == 201, answer.body
    assert answer.body["spec"] == {"size": 1, "color": "red", "items": [{}]}


async def test_strict_validation_refuses_unknown_fields(api: Client, things: str) -> None:
    refused = await api.call("POST", things, thing(other=1), fieldValidation="Strict")
    assert (refused.status, refused.reason) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.other"' in refused.message


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"size": "1"}, 'spec.size in body must be of type integer: "string"'),
        ({"size": None}, "spec.size"),
        ({"size": -1}, "spec.size in body should be greater than or equal to 0"),
        ({"color": "green"}, 'spec.color: Unsupported value: "green": supported values: "red"'),
        ({"names": {"a": 1}}, 'spec.names.a in body must be of type string: "integer"'),
        ({"amount": True}, "spec.amount"),
        ({"items": [{"a": 1}]}, 'spec.items[0].a in body must be of type string: "integer"'),
    ],
    ids=str,
)
async def test_the_schema_is_enforced(api: Client, things: str, spec: Obj, text: str) -> None:
    refused = await api.call("POST", things, thing(**spec))
    assert (refused.status, refused.reason) == (422, "Invalid"), refused
    assert refused.message.startswith(f'Things.{GROUP} "one" is invalid: ')
    assert text in refused.message


async def test_required_fields_are_required(api: Client, things: str) -> None:
    body = thing()
    del body["spec"]["size"]
    refused = await api.call("POST", things, body)
    assert "spec.size: Required value" in refused.message
    cause = refused.body["details"]["causes"][0]
    assert (cause["reason"], cause["field"]) == ("FieldValueRequired", "spec.size")


async def test_a_custom_object_must_say_its_kind(api: Client, things: str) -> None:
    refused = await api.call("POST", things, {"metadata": {"name": "one"}, "spec": {"size": 1}})
    assert refused.status == 400
    assert "Object 'Kind' is missing" in refused.message


async def test_status_and_spec_have_addresses_of_their_own(api: Client, things: str) -> None:
    made = await api.create(things, {**thing(), "status": {"phase": "A"}})
    assert "status" not in made
    status = await api.patch(
        f"{things}/one/status",
        {"status": {"phase": "B"}, "spec": {"size": 5}, "metadata": {"labels": {"a": "b"}}},
    )
    assert status.body["status"] == {"phase": "B"}
    assert status.body["spec"]["size"] == 1
    assert "labels" not in status.body["metadata"]
    assert status.body["metadata"]["generation"] == 1
    spec = await api.patch(f"{things}/one", {"status": {"phase": "C"}, "spec": {"size": 6}})
    assert spec.body["status"] == {"phase": "B"}
    assert spec.body["metadata"]["generation"] == 2


async def test_without_the_subresource_status_is_an_ordinary_field(api: Client, ns: str) -> None:
    path = await define(api, crd("plains", status=False), ns)
    body = {**thing(), "kind": "Plains", "status": {"phase": "A"}}
    made = await api.create(path, body)
    assert made["status"] == {"phase": "A"}
    patched = await api.patch(f"{path}/one", {"status": {"phase": "B"}})
    assert patched.body["status"] == {"phase": "B"}
    assert patched.body["metadata"]["generation"] == 2
    assert (await api.patch(f"{path}/one/status", {"status": {}})).status == 404
    await undefine(api, "plains")


async def test_an_update_must_name_the_version(api: Client, things: str) -> None:
    await api.create(things, thing())
    refused = await api.call("PUT", f"{things}/one", thing(size=2))
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value: 0" in refused.message
    assert "must be specified for an update" in refused.message


async def test_lists_of_custom_objects_say_what_each_is(api: Client, things: str) -> None:
    await api.create(things, thing())
    listed = (await api.get(things)).body
    assert (listed["kind"], listed["apiVersion"]) == ("ThingsList", f"{GROUP}/v1")
    assert listed["items"][0]["kind"] == "Things"


async def test_versions_show_one_object(api: Client, ns: str) -> None:
    definition = crd("versioned")
    first = definition["spec"]["versions"][0]
    definition["spec"]["versions"].append({**first, "name": "v1beta1", "storage": False})
    path = await define(api, definition, ns)
    old = path.replace("/v1/", "/v1beta1/", 1)
    body = {**thing(), "kind": "Versioned", "apiVersion": f"{GROUP}/v1beta1"}
    made = await api.create(old, body)
    assert made["apiVersion"] == f"{GROUP}/v1beta1"
    read = (await api.get(f"{path}/one")).body
    assert read["apiVersion"] == f"{GROUP}/v1"
    assert read["metadata"]["uid"] == made["metadata"]["uid"]
    groups = {g["name"]: g for g in (await api.get("/apis")).body["groups"]}
    versions = [item["version"] for item in groups[GROUP]["versions"]]
    assert versions == ["v1", "v1beta1"]
    await undefine(api, "versioned")


async def test_deleting_a_definition_deletes_its_objects(api: Client, ns: str) -> None:
    path = await define(api, crd("doomed"), ns)
    await api.create(path, {**thing(), "kind": "Doomed"})
    await undefine(api, "doomed")

    async def gone() -> bool:
        return (await api.get(path)).status == 404

    await eventually(gone)
    path = await define(api, crd("doomed"), ns)
    assert await api.names(path) == []
    await undefine(api, "doomed")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"metadata": {"name": "other"}}, 'must be spec.names.plural+"."+spec.group'),
        ({"scope": "Sometimes"}, "spec.scope: Unsupported value"),
        ({"versions": []}, "must have exactly one version marked as storage version"),
    ],
    ids=str,
)
async def test_broken_definitions_are_refused(api: Client, change: Obj, text: str) -> None:
    definition = crd("broken")
    definition["metadata"] = change.get("metadata", definition["metadata"])
    definition["spec"] |= {key: value for key, value in change.items() if key != "metadata"}
    refused = await api.call("POST", DEFINITIONS, definition)
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert text in refused.message

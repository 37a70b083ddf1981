"""Server-side apply, as kubectl and the Python client use it."""

from tests.api_suite.client import Answer, Client, Obj
from tests.api_suite.objects import GROUP, config_map, crd, define, undefine
from tests.support.waiting import eventually

APPLY = "application/apply-patch+yaml"


async def applied(
    api: Client, path: str, body: Obj, manager: str = "one", force: str = "false"
) -> Answer:
    query = {"fieldManager": manager, "force": force}
    return await api.call("PATCH", path, body, content_type=APPLY, **query)


async def test_the_first_apply_creates_and_the_next_changes(api: Client, maps: str) -> None:
    made = await applied(api, f"{maps}/one", {**config_map("one"), "data": {"x": "1", "y": "2"}})
    assert (made.status, made.body["data"]) == (201, {"x": "1", "y": "2"})
    changed = await applied(api, f"{maps}/one", {**config_map("one"), "data": {"x": "3", "y": "2"}})
    assert (changed.status, changed.body["data"]) == (200, {"x": "3", "y": "2"})
    assert changed.body["metadata"]["uid"] == made.body["metadata"]["uid"]


async def test_what_a_manager_leaves_out_is_removed_unless_another_one_owns_it(
    api: Client, maps: str
) -> None:
    labels = {"a": "1", "b": "1"}
    await applied(api, f"{maps}/one", {**config_map("one", labels=labels), "data": {"x": "1"}})
    shared = await applied(
        api, f"{maps}/one", {**config_map("one"), "data": {"x": "1", "z": "1"}}, "two"
    )
    assert shared.body["data"] == {"x": "1", "z": "1"}
    left = await applied(api, f"{maps}/one", config_map("one", labels={"a": "1"}))
    assert left.body["metadata"]["labels"] == {"a": "1"}
    assert left.body["data"] == {"x": "1", "z": "1"}


async def test_a_field_of_another_manager_is_a_conflict_unless_forced(
    api: Client, maps: str
) -> None:
    await applied(api, f"{maps}/one", {**config_map("one"), "data": {"x": "1"}})
    mine = {**config_map("one"), "data": {"x": "2"}}
    refused = await applied(api, f"{maps}/one", mine, "two")
    assert (refused.status, refused.reason) == (409, "Conflict")
    assert refused.message == 'Apply failed with 1 conflict: conflict with "one": .data.x'
    forced = await applied(api, f"{maps}/one", mine, "two", "true")
    assert (forced.status, forced.body["data"]) == (200, {"x": "2"})
    # The former owner owns it no more.
    former = await applied(api, f"{maps}/one", config_map("one"))
    assert former.body["data"] == {"x": "2"}


async def test_custom_resources_are_applied_too_and_a_dry_run_stores_nothing(
    api: Client, ns: str
) -> None:
    path = f"{await define(api, crd('applied'), ns)}/one"
    kind = {"apiVersion": f"{GROUP}/v1", "kind": "Applied", "metadata": {"name": "one"}}
    try:

        async def tried() -> bool:
            # The API server knows a new kind for applies somewhat later than for reads.
            query = {"fieldManager": "one", "dryRun": "All"}
            dry = await api.call("PATCH", path, kind, content_type=APPLY, **query)
            return dry.status == 201

        await eventually(tried, timeout_s=30, because="the kind can be applied")
        assert (await api.get(path)).status == 404
        assert (await applied(api, path, kind)).status == 201
    finally:
        await undefine(api, "applied")


async def test_an_apply_needs_a_manager_and_an_object(api: Client, maps: str) -> None:
    nameless = await api.call("PATCH", f"{maps}/one", config_map("one"), content_type=APPLY)
    assert (nameless.status, nameless.reason) == (422, "Invalid")
    assert "fieldManager: Required value: is required for apply patch" in nameless.message
    broken = await api.call("PATCH", f"{maps}/one", b"a: [", content_type=APPLY, fieldManager="one")
    assert broken.status == 400
    other = await applied(api, f"{maps}/one", config_map("two"))
    assert (other.status, other.reason) == (400, "BadRequest")

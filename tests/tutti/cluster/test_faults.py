"""Faults happen as they were ordered, and to no other request."""

import asyncio

import aiohttp
import pytest

from tests.api_suite.client import Client
from tests.api_suite.objects import binding, config_map, pod
from tests.support.faulty_cluster import ORDERS

MAPS = "/api/v1/namespaces/default/configmaps"


async def order(api: Client, **rule: object) -> None:
    assert (await api.call("POST", ORDERS, {"rules": [rule]})).status == 200


async def test_chosen_requests_fail_so_many_times(api: Client) -> None:
    await order(api, verb="create", resource="configmaps", status=409, times=2)
    codes = [(await api.call("POST", MAPS, config_map(f"m-{i}"))).status for i in range(3)]
    assert codes == [409, 409, 201]
    assert (await api.call("GET", ORDERS)).body == {"done": [2]}
    assert await api.names(MAPS) == ["m-2"]
    await api.call("POST", ORDERS, {"clear": True})
    assert (await api.call("GET", ORDERS)).body == {"done": []}


async def test_a_refusal_for_load_says_when_to_come_back(api: Client) -> None:
    await order(api, status=429, retryAfterS=7)
    answer = await api.get(MAPS)
    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    assert answer.body["details"]["retryAfterSeconds"] == 7


async def test_one_members_binding_is_refused_but_its_dry_run_is_not(
    api: Client, pods: str
) -> None:
    await order(api, subresource="binding", name="w-1", dryRun=False, status=403)
    for index in range(2):
        await api.create(pods, pod(f"w-{index}"))
    path = f"{pods}/w-1/binding"
    assert (await api.call("POST", path, binding("w-1", "node-1"), dryRun="All")).status == 201
    assert (await api.call("POST", path, binding("w-1", "node-1"))).status == 403
    await api.create(f"{pods}/w-0/binding", binding("w-0", "node-1"))


async def test_an_answer_can_be_lost_after_the_deed(api: Client) -> None:
    await order(api, verb="create", status=504, after=True, times=1)
    assert (await api.call("POST", MAPS, config_map("one"))).status == 504
    assert await api.names(MAPS) == ["one"]


async def test_answers_can_be_late(api: Client) -> None:
    await order(api, verb="get", latencyMs=60_000)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await api.get(f"{MAPS}/one")
    assert await api.names(MAPS) == []


async def test_watches_are_dropped(api: Client) -> None:
    async with api.watch(MAPS) as events:
        await api.create(MAPS, config_map("one"))
        await events.next()
        await api.call("POST", ORDERS, {"dropWatches": True})
        with pytest.raises(aiohttp.ClientError):
            await events.next()


async def test_history_is_forgotten_for_open_and_for_resumed_watches(api: Client) -> None:
    made = await api.create(MAPS, config_map("one"))
    version = made["metadata"]["resourceVersion"]
    async with api.watch(MAPS, resourceVersion=version) as events:
        await api.call("POST", ORDERS, {"expireWatches": True})
        kind, status = await events.next()
        assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    async with api.watch(MAPS, resourceVersion=version) as events:
        assert (await events.next())[1]["code"] == 410
    listed = (await api.get(MAPS)).body["metadata"]["resourceVersion"]
    async with api.watch(MAPS, resourceVersion=listed) as events:
        await api.create(MAPS, config_map("two"))
        assert await events.next_name() == ("ADDED", "two")


@pytest.mark.parametrize(
    "rule",
    [{"status": 418}, {"times": "often"}, {"latencyMs": -1}, {"colour": "red"}],
    ids=str,
)
async def test_nonsense_is_refused(api: Client, rule: dict[str, object]) -> None:
    assert (await api.call("POST", ORDERS, {"rules": [rule]})).status == 400
    assert (await api.get(MAPS)).status == 200

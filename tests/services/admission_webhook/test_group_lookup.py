"""Look-ups of PodGroups: on both API servers, and on one that fails."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from services.admission_webhook.core.named_groups import NamedGroup
from services.admission_webhook.group_lookup import (
    LISTED_MAX,
    LOOKUPS_BURST,
    LOOKUPS_MAX,
    TIMEOUT_S,
    GroupLookup,
)
from shared.dialects.discovery import group_resources
from shared.kube.client import KubeClient
from shared.kube.credentials import Credentials
from shared.kube.kubeconfig import Access
from shared.kube.objects import KubeObject
from shared.kube.resources import PODGROUPS_COSCHEDULING, PODGROUPS_VOLCANO, Resource
from shared.model.objects import GROUP_NAME_SCOPE
from tests.services.admission_webhook.reviews import Object, a_pod_group
from tests.support.scripted_apiserver import (
    ScriptedApiServer,
    answer,
    failure,
    listing,
    reset,
    scripted_apiserver,
)
from tests.support.waiting import eventually

NAMESPACE = "default"
#: Kinds of the scope whose CRDs are those of the product.
INSTALLED = tuple(one for one in group_resources(GROUP_NAME_SCOPE) if one != PODGROUPS_COSCHEDULING)
MISSING = f"tutti: PodGroup {NAMESPACE}/traim does not exist; the pod waits until it is created"
ABSENT = failure(404, "NotFound")
#: On a busy machine an API server may take longer than reviews wait.
PATIENCE_S = 20


def naming(name: str) -> NamedGroup:
    return NamedGroup(NAMESPACE, name, "the pod waits")


class Looking:
    """A look-up and how its look-ups ended."""

    def __init__(self, client: KubeClient | None, timeout_s: float = TIMEOUT_S) -> None:
        self.endings: Counter[str] = Counter()
        self.client = client
        self.lookup = GroupLookup(lambda: self.client, self._ended, timeout_s=timeout_s)

    async def at(self, name: str = "traim") -> tuple[str, ...]:
        return await self.lookup.warnings(naming(name))

    def _ended(self, ending: str) -> None:
        self.endings[ending] += 1


@pytest.fixture
async def groups(client: KubeClient) -> AsyncIterator[KubeClient]:
    """A client of the API server; its groups are deleted at the end."""
    yield client
    for resource in INSTALLED:
        for one in (await client.list(resource, KubeObject, namespace=NAMESPACE)).items:
            await client.delete(resource, one.metadata.name, namespace=NAMESPACE)


def a_group(resource: Resource, name: str) -> Object:
    return a_pod_group(resource, minMember=1) | {"metadata": {"name": name}}


async def make(client: KubeClient, name: str, resource: Resource = PODGROUPS_VOLCANO) -> None:
    await client.create(resource, a_group(resource, name), namespace=NAMESPACE)


async def test_a_group_that_does_not_exist_is_warned_of_with_its_likely_name(
    groups: KubeClient,
) -> None:
    looking = Looking(groups, PATIENCE_S)
    assert await looking.at() == (MISSING,)
    await make(groups, "train")
    (warning,) = await looking.at()
    assert 'PodGroup default/traim does not exist (did you mean "train"?)' in warning
    assert looking.endings == {"missing": 2}


@pytest.mark.parametrize("resource", INSTALLED, ids=lambda one: one.group)
async def test_a_group_of_any_api_exists(groups: KubeClient, resource: Resource) -> None:
    await make(groups, "traim", resource)
    looking = Looking(groups, PATIENCE_S)
    assert await looking.at() == ()
    assert looking.endings == {"found": 1}


async def test_a_group_that_was_created_just_before_is_always_found(groups: KubeClient) -> None:
    looking = Looking(groups, PATIENCE_S)
    for index in range(50):
        await make(groups, f"group-{index}")
        assert await looking.at(f"group-{index}") == ()
    assert looking.endings == {"found": 50}


async def test_a_group_of_another_scope_is_looked_for_in_each_version_of_its_kind() -> None:
    script = [ABSENT, ABSENT, ABSENT, answer(200, {})]
    async with scripted(*script) as (server, looking):
        named = naming("train")._replace(scope="podgroups.scheduling.k8s.io")
        assert await looking.lookup.warnings(named) == ()
        assert [one.path.split("/")[2:4] for one in server.requests] == [
            ["scheduling.k8s.io", version] for version in ("v1", "v1beta1", "v1alpha3", "v1alpha2")
        ]


@asynccontextmanager
async def scripted(
    *script: Any, timeout_s: float = TIMEOUT_S
) -> AsyncIterator[tuple[ScriptedApiServer, Looking]]:
    async with (
        scripted_apiserver(*script) as server,
        KubeClient(Credentials(Access(origin="test", server=server.url))) as client,
    ):
        yield server, Looking(client, timeout_s)


async def test_without_a_client_nothing_is_looked_up_and_nothing_waits() -> None:
    looking = Looking(None)
    assert await looking.at() == ()
    assert not looking.endings


@pytest.mark.parametrize(
    "fault",
    [
        failure(403, "Forbidden"),
        failure(429, "TooManyRequests"),
        failure(500, "InternalError"),
        reset,
    ],
    ids=["forbidden", "shedding load", "an error", "a lost connection"],
)
async def test_a_fault_is_no_warning(fault: Any) -> None:
    for script in ([fault], [ABSENT, fault]):
        async with scripted(*script) as (_, looking):
            assert await looking.at() == ()
            assert looking.endings == {"unanswered": 1}


async def test_kinds_that_are_not_served_have_no_group() -> None:
    unserved = answer(404, b"404 page not found")
    train = {"metadata": {"name": "train"}}
    script = [ABSENT, *[unserved] * 3, listing(1, train), *[unserved] * 3]
    async with scripted(*script) as (server, looking):
        (warning,) = await looking.at()
        assert 'did you mean "train"' in warning
        assert len(server.requests) == len(script)


async def test_an_api_server_that_does_not_answer_delays_a_pod_by_the_timeout_at_most() -> None:
    async with scripted() as (_, looking):
        started_s = asyncio.get_running_loop().time()
        assert await looking.at() == ()
        took_s = asyncio.get_running_loop().time() - started_s
        assert TIMEOUT_S <= took_s < TIMEOUT_S + 5
        assert looking.endings == {"unanswered": 1}


@pytest.mark.parametrize(
    "listed",
    [None, failure(403, "Forbidden"), listing(1, {"metadata": {"name": "train"}}, continue_="x")],
    ids=["no answer", "refused", "too many"],
)
async def test_without_the_names_of_groups_the_warning_has_no_suggestion(listed: Any) -> None:
    script = [ABSENT] * len(group_resources(GROUP_NAME_SCOPE)) + ([listed] if listed else [])
    async with scripted(*script) as (server, looking):
        assert await looking.at() == (MISSING,)
        assert server.requests[-1].query == {"limit": str(LISTED_MAX)}


async def test_a_bounded_number_of_look_ups_is_in_flight() -> None:
    # Long enough for a busy machine to send all of them before the first gives up.
    async with scripted(timeout_s=3.0) as (server, looking):
        async with asyncio.TaskGroup() as tasks:
            for _ in range(LOOKUPS_MAX):
                tasks.create_task(looking.at())
            await eventually(lambda: len(server.requests) == LOOKUPS_MAX)
            assert await looking.at() == ()
            assert looking.endings["skipped"] == 1
        assert looking.endings == {"skipped": 1, "unanswered": LOOKUPS_MAX}


async def test_a_burst_of_pods_is_looked_up_in_part() -> None:
    found = answer(200, {})
    pods = 5 * LOOKUPS_BURST
    async with scripted(*[found] * pods) as (server, looking):
        for _ in range(pods):
            assert await looking.at() == ()
        assert looking.endings["skipped"] > 0
        assert LOOKUPS_BURST <= looking.endings["found"] == len(server.requests)

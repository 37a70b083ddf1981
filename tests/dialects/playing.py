"""Plays cases on a cluster, several at a time."""

import asyncio
import logging
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, Final

import pytest

from tests.controlplane.client import ApiError, Object
from tests.dialects.cases import Case, Expected, NodesGiven, Step, manifests, own
from tests.dialects.clusters import GPU, Cluster
from tests.dialects.objects import CaseObjects
from tests.support.waiting import eventually

logger = logging.getLogger(__name__)

#: Verdicts appear on pods and in Events after two seconds, and later on a busy machine.
SEEN_S: Final = 60.0
POLL_S: Final = 0.15
#: Cases that are played at the same time: most of their time is spent waiting.
TOGETHER: Final = 12


async def play_all(cluster: Cluster, cases: Iterable[Case]) -> dict[str, Exception | None]:
    """Play these cases; the outcome of each by its name: None where all is as expected."""
    outcomes: dict[str, Exception | None] = {}
    pending = iter(list(enumerate(cases)))

    async def work() -> None:
        for number, case in pending:
            logger.info("%s: begins", case.name)
            try:
                await play(cluster, case, f"c{number}")
            # The outcome of each case is reported by its own test.
            except Exception as error:  # noqa: BLE001
                outcomes[case.name] = error
            else:
                outcomes[case.name] = None
            logger.info("%s: %s", case.name, outcomes[case.name] or "as expected")

    async with asyncio.TaskGroup() as group:
        for index in range(TOGETHER):
            group.create_task(work(), name=f"player-{index}")
    return outcomes


async def play(cluster: Cluster, case: Case, case_id: str) -> None:
    """Play one case, under an id that no other one has.

    Raises:
        AssertionError: Something is not as expected; the message names the step.
    """
    case = own(case, case_id)
    objects = CaseObjects(cluster.api, f"dialects-{case_id}")
    player = _Player(cluster, objects, case_id)
    await objects.begin()
    try:
        for number, step in enumerate(case.steps, 1):
            try:
                await player.play(step)
            except (AssertionError, ApiError, pytest.fail.Exception) as error:
                raise AssertionError(f"step {number}: {error}") from error
    finally:
        await objects.end(player.nodes)


class _Player:
    def __init__(self, cluster: Cluster, objects: CaseObjects, case_id: str) -> None:
        self._cluster = cluster
        self._objects = objects
        self._case_id = case_id
        self.nodes: list[str] = []

    async def play(self, step: Step) -> None:
        """Do what a step says, and wait until everything is as expected."""
        await self._delete(step.delete)
        for reference, body in step.patch.items():
            await self._objects.patch(reference, body)
        for reference, body in step.status.items():
            await self._objects.patch_status(reference, body)
        for name, exit_code in step.finish.items():
            pod = await self._objects.get(f"pod/{name}")
            await self._cluster.finish(pod, exit_code)
        await self._add_nodes(step.nodes)
        for manifest in manifests(step.create):
            await self._objects.create(manifest)
        for one in step.refused:
            (manifest,) = manifests((one.object,))
            await self._refused(manifest, one.message)

        async def as_expected() -> bool:
            await check(step.expect, self._objects, self._case_id)
            return True

        await eventually(as_expected, timeout_s=SEEN_S, poll_s=POLL_S, because="all is as expected")

    async def _delete(self, references: tuple[str, ...]) -> None:
        deleted = [(one, await self._objects.delete(one)) for one in references]

        async def are_gone() -> bool:
            for reference, uid in deleted:
                address = self._objects.address(reference)
                assert await self._objects.is_deleted(address, uid), f"{reference} is there"
            return True

        await eventually(are_gone, timeout_s=SEEN_S, poll_s=POLL_S, because="all are deleted")

    async def _add_nodes(self, given: int | tuple[NodesGiven, ...]) -> None:
        if isinstance(given, int):
            name = f"node-{len(self.nodes)}"
            given = (NodesGiven(name=name, count=given),) if given else ()
        for one in given:
            for index in range(one.count):
                name = f"{self._case_id}-{one.name}-{index}"
                resources = {f"{self._case_id}.{GPU}": one.gpus}
                await self._cluster.add_node(name, resources, dict(one.labels))
                self.nodes.append(name)

    async def _refused(self, manifest: Object, message: str) -> None:
        with pytest.raises(ApiError, match=re.escape(message)):
            await self._objects.create(manifest)


async def check(expected: Expected, objects: CaseObjects, case_id: str) -> None:
    """Compare everything that a step expects with the cluster, the placements last: no pod is bound
    when all messages have appeared, which the planner publishes after its decision.

    Raises:
        AssertionError: Something differs.
    """
    for reference, fields in expected.status.items():
        status = (await objects.get(reference)).get("status", {})
        for path, value in fields.items():
            _check_field(reference, path, value, status)
    if expected.events:
        events = [_shown(event) for event in await objects.events()]
        for one in expected.events:
            kind, _, name = one.of.partition("/")
            wanted = (f"{kind.partition('.')[0]}/{name}", one.reason)
            assert any(
                (of, reason) == wanted and one.message in message for of, reason, message in events
            ), f"no Event {one.reason} of {one.of} with {one.message!r} among {events}"
    _check_pods(expected, await objects.pods(), case_id)


def _check_pods(expected: Expected, pods: list[Object], case_id: str) -> None:
    nodes = {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in pods
        if pod["spec"].get("nodeName")
    }
    messages = {
        pod["metadata"]["name"]: _why(pod) for pod in pods if not pod["spec"].get("nodeName")
    }
    if isinstance(expected.bound, int):
        assert len(nodes) == expected.bound, f"bound: {nodes}; waiting: {messages}"
    else:
        assert set(nodes) == set(expected.bound), f"bound: {nodes}; waiting: {messages}"
    for name, node in expected.on.items():
        assert nodes.get(name) == f"{case_id}-{node}", f"{name} is on {nodes.get(name)}"
    for pattern, words in expected.pods.items():
        found = {name: text for name, text in messages.items() if fnmatchcase(name, pattern)}
        assert found, f"no pod {pattern} waits: {messages}"
        for name, text in found.items():
            assert text is not None, f"{name} has no reason"
            assert words in text, f"{name}: {text}"
    unexplained = {name for name, text in messages.items() if text is None}
    assert unexplained <= set(expected.silent), f"without a reason: {sorted(unexplained)}"


def _why(pod: Object) -> str | None:
    """The message of PodScheduled=False."""
    for one in pod["status"].get("conditions", ()):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            return str(one.get("message", ""))
    return None


def _check_field(reference: str, path: str, value: object, status: Object) -> None:
    found: Any = status
    parts = path.split(".")
    if parts[0].lower().endswith("conditions") and len(parts) > 1:
        conditions = {one["type"]: one for one in status.get(parts[0]) or ()}
        found = conditions.get(parts[1])
        parts = parts[2:]
    for part in parts:
        found = found.get(part) if isinstance(found, dict) else None
    if path.endswith(".message"):
        assert str(value) in str(found), f"{reference}: {path} is {found!r}"
    else:
        assert found == value, f"{reference}: {path} is {found!r}: {status}"


def _shown(event: Object) -> tuple[str, str, str]:
    """The object, reason and message of an Event."""
    of = event["involvedObject"]
    return f"{of['kind'].lower()}/{of['name']}", event.get("reason", ""), event.get("message", "")

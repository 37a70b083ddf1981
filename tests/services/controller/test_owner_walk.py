"""The walk over owners ends where it cannot go on, and never for ever."""

from typing import Any

import msgspec
import pytest

from services.controller.owner_walk import OwnerWalk
from shared.dialects.owned_gangs import STEPS_MAX
from shared.kube.errors import Forbidden, MalformedAnswer, NotFound, TransportError
from shared.kube.objects import KubeObject, Pod
from shared.kube.resources import Resource

KINDS = {
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "Pod": "v1",
    "CronJob": "batch/v1",
}


def metadata(name: str, kind: str = "", owner: str = "") -> dict[str, Any]:
    above = {"apiVersion": KINDS.get(kind), "kind": kind, "name": owner, "uid": f"uid-{owner}"}
    references = [{**above, "controller": True}] if owner else []
    return {"name": name, "namespace": "team", "uid": f"uid-{name}", "ownerReferences": references}


class Server:
    """An API server with these objects, or these errors instead."""

    def __init__(self, *objects: dict[str, Any], **errors: Exception) -> None:
        self.objects = {one["name"]: one for one in objects}
        self.errors = errors
        self.asked: list[str] = []

    async def get(
        self, resource: Resource, name: str, kind: type[KubeObject], *, namespace: str
    ) -> KubeObject:
        self.asked.append(f"{resource.kind} {namespace}/{name}")
        if name in self.errors:
            raise self.errors[name]
        if name not in self.objects:
            raise NotFound(404, "NotFound", name)
        return msgspec.convert({"metadata": self.objects[name]}, kind)


async def owners(server: Server, pod: dict[str, Any]) -> list[str]:
    client: Any = server
    found = await OwnerWalk(client).owners_of(msgspec.convert({"metadata": pod}, Pod))
    return [one.owner.metadata.name for one in found]


POD = metadata("p", "Job", "j")
JOB = metadata("j", "JobSet", "s")
SET = metadata("s", "CronJob", "c")


async def test_the_walk_ends_below_a_kind_that_is_not_read() -> None:
    server = Server(JOB, SET)
    assert await owners(server, POD) == ["j", "s"]
    assert server.asked == ["Job team/j", "JobSet team/s"]


async def test_a_pod_without_a_controller_costs_nothing() -> None:
    server = Server()
    assert await owners(server, metadata("p")) == []
    assert server.asked == []


@pytest.mark.parametrize(
    "error",
    [
        NotFound(404, "NotFound", "no such object"),
        Forbidden(403, "Forbidden", "an older role of this account"),
        MalformedAnswer("spec.suspend: Expected `bool`, got `str`"),
    ],
    ids=["gone", "forbidden", "unreadable"],
)
async def test_an_owner_that_cannot_be_read_ends_the_walk(error: Exception) -> None:
    assert await owners(Server(JOB, s=error), POD) == ["j"]


async def test_an_owner_that_was_created_again_under_its_name_is_another_object() -> None:
    assert await owners(Server(JOB, {**SET, "uid": "another"}), POD) == ["j"]


async def test_a_request_that_failed_is_no_answer() -> None:
    with pytest.raises(TransportError):
        await owners(Server(JOB, s=TransportError("connection reset")), POD)


async def test_owners_in_a_circle_end_the_walk() -> None:
    server = Server(metadata("a", "Pod", "b"), metadata("b", "Pod", "a"))
    assert len(await owners(server, metadata("p", "Pod", "a"))) == STEPS_MAX

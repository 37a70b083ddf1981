"""The users of a chaos run know their gangs, whatever becomes of their requests."""

from collections.abc import Mapping
from random import Random

import pytest
from aiohttp import ClientError
from typing_extensions import override

from tests.chaos.gangs import Gang, Users
from tests.controlplane.client import ApiError, Object, RawClient


class Killed(RawClient):
    """An API server that is killed after each of its first answers, so many times."""

    def __init__(self, kills: int) -> None:
        self.kills = kills
        self.made = False

    @override
    async def create(self, path: str, body: Object) -> Object:
        if self.made:
            raise ApiError(409, "AlreadyExists", "it is there")
        self.made = True
        return body

    @override
    async def get(self, path: str, **params: str) -> Object:
        if self.kills:
            self.kills -= 1
            raise ClientError("the API server was killed")
        return {"metadata": {"uid": "u"}}

    @override
    async def request(
        self,
        method: str,
        path: str,
        body: Object | list[Object] | None = None,
        *,
        content_type: str = "",
        params: Mapping[str, str] | None = None,
    ) -> Object:
        raise AssertionError("the test creates and reads only")


async def test_the_group_of_a_job_is_known_though_the_job_could_not_be_read_at_once() -> None:
    """Otherwise its members are looked for under another name, and a gang that runs counts as
    lost: `gang-305` and `gang-302` of seed 3, each created when the API server was killed.
    """
    users = Users(Killed(1), Random(1), alive_max=1, room=8)
    job = Gang("gang-1", 3, 3, owned=True, poisoned=False, same_names=True, lives_s=1.0, form="job")
    with pytest.raises(ClientError):
        await users.declare(job)
    assert job.group != "gang-1-u"
    await users.declare(job)
    assert job.group == "gang-1-u"

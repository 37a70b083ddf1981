"""Which controllers are taken for living ones, on both API servers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from typing_extensions import override

from services.controller.other_controllers import OtherControllers
from shared.kube.client import KubeClient
from shared.kube.errors import ApiError, Forbidden
from shared.kube.resources import LEASES
from tests.services.controller.leases import a_lease
from tests.support.waiting import eventually


@asynccontextmanager
async def looking(others: OtherControllers, reported: list[bool]) -> AsyncIterator[None]:
    task = asyncio.create_task(
        others.run(lambda: reported.append(others.none_active)), name="looking"
    )
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_holder_that_renews_a_lease_of_the_name_in_any_namespace_lives(
    either: KubeClient, place: str
) -> None:
    others = OtherControllers(either, [place, "another-name"], check_every_s=0.05)
    reported: list[bool] = []
    await either.create(LEASES, a_lease(place), namespace=place)
    async with looking(others, reported):
        await others.known.wait()
        assert not others.none_active
        await either.patch(LEASES, place, a_lease(place, holder=""), namespace=place)
        await eventually(lambda: others.none_active)
        await either.patch(LEASES, place, a_lease(place), namespace=place)
        await eventually(lambda: not others.none_active)
    assert reported == [True, False]


@pytest.mark.parametrize("ahead_s", [-90.0, 90.0])
async def test_a_renewing_holder_lives_whatever_its_clock_says_and_another_is_dead_soon(
    either: KubeClient, place: str, ahead_s: float
) -> None:
    others = OtherControllers(either, [place], check_every_s=0.05, lives_s=1.5)
    reported: list[bool] = []
    await either.create(LEASES, a_lease(place, age_s=-ahead_s), namespace=place)
    async with looking(others, reported):
        await others.known.wait()
        loop = asyncio.get_running_loop()
        until_s = loop.time() + 3.0
        while loop.time() < until_s:
            assert not others.none_active
            await either.patch(LEASES, place, a_lease(place, age_s=-ahead_s), namespace=place)
        await eventually(lambda: others.none_active)
    assert reported == [True]


async def test_a_lease_that_was_left_behind_delays_no_controller(
    either: KubeClient, place: str
) -> None:
    await either.create(LEASES, a_lease(place, age_s=3600), namespace=place)
    others = OtherControllers(either, [place])
    await others.check()
    assert others.none_active


async def test_a_controller_that_takes_over_or_has_no_names_to_look_for_does_not_look(
    either: KubeClient, place: str
) -> None:
    await either.create(LEASES, a_lease(place), namespace=place)
    assert OtherControllers(either, [place], take_over=True).none_active
    # `tutti up` announces itself by a Lease of that name.
    assert OtherControllers(either, ["tutti"]).none_active
    assert not OtherControllers(either, [place]).none_active, "no look has been taken"


class _Refused(KubeClient):
    """A client without the right to see the Lease."""

    @override
    async def list(self, *given: Any, **named: Any) -> Any:
        raise Forbidden(403, "Forbidden", "not you")


class _Stumbling(KubeClient):
    """A client whose first look fails."""

    looks = 0

    @override
    async def list(self, *given: Any, **named: Any) -> Any:
        self.looks += 1
        if self.looks == 1:
            raise ApiError(500, "InternalError", "etcd is away")
        return await super().list(*given, **named)


@pytest.mark.parametrize("kind", [_Refused, _Stumbling])
async def test_a_look_that_is_refused_says_nothing_and_one_that_fails_is_repeated(
    either: KubeClient, kind: type[KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.controller.other_controllers._RETRY_S", 0.05)
    async with kind(either.credentials) as client:
        others = OtherControllers(client, ["some-name"], check_every_s=0.05)
        async with looking(others, []):
            await eventually(lambda: others.none_active)

"""What a user may do: what is asked of the API server, for which user, and how long it holds."""

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from services.api.authentication import User
from services.api.authorization import Action, Authorizer, Sight
from services.api.errors import RequestFailed
from shared.kube.errors import KubeError

ADA = User(name="ada", uid="u-1", groups=("one", "two"), extra=(("example.com/key", ("a", "b")),))
LIST_PODS = Action(verb="list", group="", version="v1", resource="pods", namespace="team")


class Reviews:
    """In place of the API server: allows what a test says of a review."""

    def __init__(self, allows: Callable[[Mapping[str, Any]], bool]) -> None:
        self.allows = allows
        self.specs: list[Mapping[str, Any]] = []
        self.failure: Exception | None = None

    async def create(self, _resource: object, manifest: Mapping[str, Any]) -> Any:
        self.specs.append(manifest["spec"])
        if self.failure is not None:
            raise self.failure
        status = {"allowed": self.allows(manifest["spec"])}
        return SimpleNamespace(body=msgspec.json.encode({"status": status}))


def authorizer(reviews: Reviews) -> Authorizer:
    return Authorizer(reviews)  # type: ignore[arg-type]


def in_namespaces(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda spec: spec["resourceAttributes"]["namespace"] in names


async def status_of(asking: Any) -> int:
    with pytest.raises(RequestFailed) as refused:
        await asking
    return refused.value.status


async def test_a_review_names_the_whole_user_and_the_whole_action() -> None:
    reviews = Reviews(lambda _: True)
    await authorizer(reviews).require(ADA, "watch", "gangs", namespace="team", name="job")
    (spec,) = reviews.specs
    assert spec == {
        "user": "ada",
        "uid": "u-1",
        "groups": ["one", "two"],
        "extra": {"example.com/key": ["a", "b"]},
        "resourceAttributes": {
            "verb": "watch",
            "group": "visibility.tutti.dev",
            "version": "v1alpha1",
            "resource": "gangs",
            "namespace": "team",
            "name": "job",
        },
    }


@pytest.mark.parametrize(
    "field", [{"name": "eve"}, {"uid": "u-2"}, {"groups": ("one",)}, {"extra": ()}], ids=str
)
async def test_an_answer_is_kept_for_its_user_with_all_groups_and_no_other_user(
    field: dict[str, Any],
) -> None:
    other = msgspec.structs.replace(ADA, **field)
    allowed = {"user": "ada", "uid": "u-1", "groups": ["one", "two"]}
    reviews = Reviews(lambda spec: allowed.items() <= spec.items() and bool(spec["extra"]))
    rights = authorizer(reviews)
    for _ in range(2):
        assert await rights.may(ADA, LIST_PODS) == (True,)
        assert await rights.may(other, LIST_PODS) == (False,)
    assert len(reviews.specs) == 2


@pytest.mark.parametrize(
    "field",
    [{"verb": "get"}, {"namespace": "other"}, {"resource": "nodes"}, {"name": "w-0"}],
    ids=str,
)
async def test_an_answer_is_kept_for_its_action_alone(field: dict[str, Any]) -> None:
    other = msgspec.structs.replace(LIST_PODS, **field)
    allowed = msgspec.structs.asdict(LIST_PODS)
    rights = authorizer(Reviews(lambda spec: spec["resourceAttributes"] == allowed))
    for _ in range(2):
        assert await rights.may(ADA, LIST_PODS, other) == (True, False)


async def test_a_right_that_was_withdrawn_holds_for_half_a_minute_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    began_s = now_s = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now_s)
    reviews = Reviews(lambda _: True)
    rights = authorizer(reviews)
    assert await rights.may(ADA, LIST_PODS) == (True,)
    reviews.allows = lambda _: False
    now_s = began_s + 10.0
    assert await rights.may(ADA, LIST_PODS) == (True,)
    now_s = began_s + 30.1
    assert await rights.may(ADA, LIST_PODS) == (False,)


async def test_what_a_user_may_not_is_refused_each_time() -> None:
    rights = authorizer(Reviews(lambda _: False))
    for _ in range(2):
        assert await status_of(rights.require(ADA, "list", "gangs", namespace="team")) == 403
        assert await status_of(rights.require_nodes(ADA)) == 403
        assert await status_of(rights.require_pods(ADA, "create", "team")) == 403


async def test_a_right_in_one_namespace_is_none_in_another() -> None:
    rights = authorizer(Reviews(in_namespaces("team")))
    await rights.require(ADA, "list", "gangs", namespace="team")
    await rights.require_pods(ADA, "list", "team")
    assert await status_of(rights.require(ADA, "list", "gangs", namespace="other")) == 403
    assert await status_of(rights.require(ADA, "list", "gangs")) == 403
    assert await status_of(rights.require_pods(ADA, "list", "other")) == 403
    assert await status_of(rights.require_nodes(ADA)) == 403


async def test_a_user_sees_the_namespaces_that_the_api_server_allows_and_no_others() -> None:
    some = await authorizer(Reviews(in_namespaces("b"))).sight(ADA, ["a", "b", "c", "b"])
    assert some == Sight(frozenset({"b"}))
    assert (some.sees("b"), some.sees("a"), some.sees_all) == (True, False, False)
    none = await authorizer(Reviews(in_namespaces())).sight(ADA, ["a", "b"])
    assert none == Sight(frozenset())
    everything = await authorizer(Reviews(in_namespaces(""))).sight(ADA, ["a"])
    assert everything == Sight(None)
    assert everything.sees("c")


@pytest.mark.parametrize("failure", [KubeError("it is down"), TimeoutError()], ids=str)
async def test_rights_that_cannot_be_checked_are_none(failure: Exception) -> None:
    reviews = Reviews(lambda _: True)
    reviews.failure = failure
    rights = authorizer(reviews)
    assert await status_of(rights.require_pods(ADA, "list", "team")) == 503
    assert await status_of(rights.sight(ADA, ["team"])) == 503

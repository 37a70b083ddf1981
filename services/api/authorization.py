"""Asks the API server what a user may do, by SubjectAccessReviews, and keeps its answers for a
short time.
"""

import asyncio
import hashlib
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import msgspec

from services.api.answer_cache import AnswerCache
from services.api.authentication import User
from services.api.errors import RequestFailed
from services.api.user_limits import NAME_CHARACTERS_MAX
from shared.contracts.visibility import GROUP, VERSION
from shared.kube.client import KubeClient
from shared.kube.errors import KubeError
from shared.kube.resources import ACCESS_REVIEWS, NODES, PODS
from shared.runtime.user_turns import UserTurns

#: As long as the rights of a user may be wrong after a change.
KEEP_S: Final = 30.0
#: 65,536 answers. Keys are digests: users' groups and the names in requests may be long.
_ANSWER_BYTES_MAX: Final = 32 * 1024 * 1024
_REVIEWS_IN_FLIGHT_MAX: Final = 64
#: So that the reviews of one user in all namespaces let those of others pass.
_REVIEWS_OF_USER_MAX: Final = 32
#: Checking a user in hundreds of namespaces takes some seconds at most.
_TIMEOUT_S: Final = 10.0


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """A verb on a resource, in a namespace ("": in all, or of the cluster)."""

    verb: str
    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""


class _Status(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Answer(msgspec.Struct, frozen=True):
    status: _Status = _Status()


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Answer).decode


class Sight(msgspec.Struct, frozen=True):
    """What a user may see of gangs: of all namespaces (None), or of these."""

    namespaces: frozenset[str] | None

    @property
    def sees_all(self) -> bool:
        """Whether the user sees gangs of all namespaces."""
        return self.namespaces is None

    def sees(self, namespace: str) -> bool:
        """Whether the user sees gangs of a namespace."""
        return self.namespaces is None or namespace in self.namespaces


class Authorizer:
    """Answers whether users may do something."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._answers: AnswerCache[bytes, bool] = AnswerCache(
            keep_s=lambda _allowed: KEEP_S,
            bytes_max=_ANSWER_BYTES_MAX,
            turns=UserTurns(places=_REVIEWS_IN_FLIGHT_MAX, of_user=_REVIEWS_OF_USER_MAX),
            renews=True,
        )

    async def may(self, user: User, *actions: Action) -> tuple[bool, ...]:
        """Whether a user may do each of these.

        Raises:
            RequestFailed: 503, the API server does not answer in time.
        """
        asked = [(_key(user, action), partial(self._review, user, action)) for action in actions]
        kept = [self._answers.kept(key, ask, user.name) for key, ask in asked]
        if None not in kept:
            # The usual case, and cheap: watches ask before each write.
            return tuple(allowed is True for allowed in kept)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                answers = (self._answers.get(key, ask, user.name) for key, ask in asked)
                return tuple(await asyncio.gather(*answers))
        except (KubeError, TimeoutError) as error:
            why = str(error) or "the API server does not answer"
            raise RequestFailed(
                503, f"rights could not be checked: {why}", retry_after_s=1
            ) from None

    async def require(
        self, user: User, verb: str, resource: str, *, namespace: str = "", name: str = ""
    ) -> None:
        """Refuse a user without the right to one of our own resources. Raises RequestFailed."""
        action = Action(
            verb=verb,
            group=GROUP,
            version=VERSION,
            resource=resource,
            namespace=namespace,
            name=name,
        )
        (allowed,) = await self.may(user, action)
        if not allowed:
            raise _forbidden(user, verb, f"{resource}.{GROUP}", namespace)

    async def require_nodes(self, user: User) -> None:
        """Refuse a user who may not list nodes. Raises RequestFailed."""
        if not await self.sees_nodes(user):
            raise _forbidden(user, "list", NODES.title, "")

    async def sees_nodes(self, user: User) -> bool:
        """Whether a user may list nodes. Raises RequestFailed, as `may`."""
        action = Action(verb="list", group="", version="v1", resource=NODES.plural)
        (allowed,) = await self.may(user, action)
        return allowed

    async def require_pods(self, user: User, verb: str, namespace: str) -> None:
        """Refuse a user without a right to pods of a namespace. Raises RequestFailed."""
        (allowed,) = await self.may(user, _pods(verb, namespace))
        if not allowed:
            raise _forbidden(user, verb, PODS.title, namespace)

    async def sight(self, user: User, namespaces: Iterable[str]) -> Sight:
        """In which of these namespaces a user sees gangs. Raises RequestFailed."""
        (everywhere,) = await self.may(user, _pods("list", ""))
        if everywhere:
            return Sight(None)
        asked = sorted(set(namespaces))
        allowed = await self.may(user, *(_pods("list", namespace) for namespace in asked))
        return Sight(
            frozenset(namespace for namespace, may in zip(asked, allowed, strict=True) if may)
        )

    async def _review(self, user: User, action: Action) -> bool:
        spec: dict[str, Any] = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra},
            "resourceAttributes": msgspec.structs.asdict(action),
        }
        manifest = {
            "apiVersion": ACCESS_REVIEWS.api_version,
            "kind": ACCESS_REVIEWS.kind,
            "spec": spec,
        }
        reply = await self._client.create(ACCESS_REVIEWS, manifest)
        return _decode(reply.body).status.allowed


def _key(user: User, action: Action) -> bytes:
    return hashlib.blake2b(user.digest + _encode(action), digest_size=32).digest()


def _pods(verb: str, namespace: str) -> Action:
    return Action(verb=verb, group="", version="v1", resource=PODS.plural, namespace=namespace)


def _forbidden(user: User, verb: str, resource: str, namespace: str) -> RequestFailed:
    where = f" in the namespace {namespace}" if namespace else ""
    return RequestFailed(
        403, f"user {user.name[:NAME_CHARACTERS_MAX]} cannot {verb} {resource}{where}"
    )

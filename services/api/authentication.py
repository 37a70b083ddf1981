"""Finds out which user sends a request.

Behind the API server: its front proxy's certificate, which TLS has verified against the CA in the
ConfigMap `kube-system/extension-apiserver-authentication`, vouches for the headers with the user.
Direct: a bearer token, which a TokenReview checks.
"""

import asyncio
import hashlib
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from aiohttp import web

from services.api.answer_cache import AnswerCache
from services.api.errors import RequestFailed, TokenRefused
from shared.kube.client import KubeClient
from shared.kube.errors import KubeError
from shared.kube.resources import CONFIGMAPS, TOKEN_REVIEWS
from shared.runtime.serving_certificate import CertificateProblem
from shared.runtime.user_turns import UserTurns

log = logging.getLogger(__name__)

_NAMESPACE: Final = "kube-system"
_CONFIGMAP: Final = "extension-apiserver-authentication"
#: Interval of reading the ConfigMap: a CA is replaced long before the old one is withdrawn.
READ_EVERY_S: Final = 60.0
#: While it could not be read at all.
_READ_AGAIN_S: Final = 2.0
#: 4,096 tokens of users with some groups.
_TOKEN_BYTES_MAX: Final = 8 * 1024 * 1024
#: Of one user, as objects in memory: a thousand groups with usual names. Each watch has its user.
USER_BYTES_MAX: Final = 128 * 1024
#: The API server itself keeps the answers of a token webhook for two minutes.
_ACCEPTED_S: Final = 60.0
_REFUSED_S: Final = 10.0
_REVIEWS_IN_FLIGHT_MAX: Final = 16
_LOG_REFUSALS_EVERY_S: Final = 60.0
_REFUSAL_CHARACTERS_MAX: Final = 500
#: Tokens of real issuers have some kilobytes at most.
_TOKEN_CHARACTERS_MAX: Final = 32_768


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user as Kubernetes' reviews name one."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: Of all this: users with equal digests are equal.
    digest: bytes = b""

    def __post_init__(self) -> None:
        """Compute the digest."""
        whole = _encode((self.name, self.uid, self.groups, self.extra))
        digest = hashlib.blake2b(whole, digest_size=32).digest()
        msgspec.structs.force_setattr(self, "digest", digest)

    @property
    def size_bytes(self) -> int:
        """What its texts take in memory."""
        pairs = ((key, *values) for key, values in self.extra)
        texts = chain((self.name, self.uid), self.groups, chain.from_iterable(pairs))
        return sum(map(sys.getsizeof, texts))


class FrontProxy(msgspec.Struct, frozen=True, kw_only=True):
    """What the ConfigMap says about front proxies."""

    #: PEM; "": no front proxy is trusted.
    ca: str = ""
    #: Common names of their certificates; empty: any that the CA has signed.
    allowed_names: tuple[str, ...] = ()
    user_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


class _UserInfo(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _ReviewStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _UserInfo = _UserInfo()
    error: str = ""


class _Review(msgspec.Struct, frozen=True):
    status: _ReviewStatus = _ReviewStatus()


_encode: Final = msgspec.msgpack.Encoder().encode
_decode_review: Final = msgspec.json.Decoder(_Review).decode


def read_front_proxy(data: Mapping[str, str]) -> FrontProxy:
    """The front proxy in the ConfigMap's data. Raises ValueError: a list is not one."""

    def listed(key: str) -> tuple[str, ...]:
        try:
            return msgspec.json.decode(
                data.get(f"requestheader-{key}") or "[]", type=tuple[str, ...]
            )
        except msgspec.MsgspecError as error:
            raise ValueError(f"requestheader-{key}: {error}") from None

    return FrontProxy(
        ca=data.get("requestheader-client-ca-file", ""),
        allowed_names=listed("allowed-names"),
        user_headers=listed("username-headers"),
        uid_headers=listed("uid-headers"),
        group_headers=listed("group-headers"),
        extra_prefixes=listed("extra-headers-prefix"),
    )


class Authenticator:
    """Authenticates requests; `run` keeps the front proxy current."""

    def __init__(self, client: KubeClient, on_ca: Callable[[str], None]) -> None:
        """`on_ca` is called, in a thread, with the CAs of front proxies, before any is trusted. It
        may raise CertificateProblem; the previous ones stay trusted then.
        """
        self._client = client
        self._on_ca = on_ca
        self._proxy = FrontProxy()
        #: When the next refusal may be logged, on the event loop's clock.
        self._log_refusals_at_s = 0.0
        #: By the tokens' hashes. None: refused.
        self._tokens: AnswerCache[bytes, User | None] = AnswerCache(
            keep_s=lambda user: _REFUSED_S if user is None else _ACCEPTED_S,
            bytes_max=_TOKEN_BYTES_MAX,
            turns=UserTurns(places=_REVIEWS_IN_FLIGHT_MAX, of_user=_REVIEWS_IN_FLIGHT_MAX),
            bytes_of=lambda user: 0 if user is None else user.size_bytes,
            renews=True,
        )

    async def run(self) -> None:
        """Read the ConfigMap until cancelled; while it cannot be read, what was read last holds."""
        logged, known = "", False
        while True:
            try:
                await self._read()
                logged, known = "", True
            except (KubeError, ValueError, CertificateProblem) as error:
                if str(error) != logged:
                    logged = str(error)
                    log.warning("the front proxy's CA cannot be read: %s", logged)
            await asyncio.sleep(READ_EVERY_S if known else _READ_AGAIN_S)

    async def _read(self) -> None:
        stored = await self._client.get(CONFIGMAPS, _CONFIGMAP, _ConfigMap, namespace=_NAMESPACE)
        proxy = read_front_proxy(stored.data)
        if proxy == self._proxy:
            return
        await asyncio.to_thread(self._on_ca, proxy.ca)
        self._proxy = proxy
        trusted = ", ".join(proxy.allowed_names) or "of any name"
        log.info("trusted front proxies: %s", trusted if proxy.ca else "none")

    async def authenticate(self, request: web.BaseRequest) -> User:
        """The user of a request.

        Raises:
            TokenRefused: The API server does not accept its token.
            RequestFailed: 401, there is none; 431, its groups and extra fields are too long; 503,
                the API server does not answer.
        """
        user = await self._user_of(request)
        if user.size_bytes > USER_BYTES_MAX:
            raise RequestFailed(
                431, f"the user's groups and extra fields must have at most {USER_BYTES_MAX} bytes"
            )
        return user

    async def _user_of(self, request: web.BaseRequest) -> User:
        certificate = request.get_extra_info("peercert")
        if certificate and self._is_front_proxy(certificate):
            user = self._from_headers(request)
            if user is not None:
                return user
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() == "bearer" and 0 < len(token) <= _TOKEN_CHARACTERS_MAX:
            user_of_token = await self._of_token(token)
            if user_of_token is None:
                raise TokenRefused
            return user_of_token
        raise RequestFailed(401, "a bearer token of this cluster is needed")

    def _is_front_proxy(self, certificate: Mapping[str, Any]) -> bool:
        """Whether a client's certificate, which TLS has verified, is one of a front proxy."""
        names = self._proxy.allowed_names
        return not names or any(name in names for name in _common_names(certificate))

    def _from_headers(self, request: web.BaseRequest) -> User | None:
        proxy, headers = self._proxy, request.headers
        name = next((headers[header] for header in proxy.user_headers if headers.get(header)), "")
        if not name:
            return None
        extra: dict[str, list[str]] = {}
        for key, value in headers.items():
            for prefix in proxy.extra_prefixes:
                if key.lower().startswith(prefix.lower()):
                    extra.setdefault(unquote(key[len(prefix) :].lower()), []).append(value)
        return User(
            name=name,
            uid=next((headers[header] for header in proxy.uid_headers if headers.get(header)), ""),
            groups=tuple(
                value for header in proxy.group_headers for value in headers.getall(header, ())
            ),
            extra=tuple(sorted((key, tuple(values)) for key, values in extra.items())),
        )

    async def _of_token(self, token: str) -> User | None:
        # A hash, so that no dump of this process's memory has the tokens of an hour.
        key = hashlib.sha256(token.encode()).digest()
        try:
            return await self._tokens.get(key, partial(self._review, token))
        except KubeError as error:
            raise RequestFailed(
                503, f"the token could not be checked: {error}", retry_after_s=1
            ) from None

    def _log_refusal(self, why: str) -> None:
        """Log the API server's reason, such as the audience that it expects: administrators need it
        when they set up OIDC. Any client can send tokens, so the log gets one line in a minute.
        """
        now_s = asyncio.get_running_loop().time()
        if now_s < self._log_refusals_at_s:
            return
        self._log_refusals_at_s = now_s + _LOG_REFUSALS_EVERY_S
        # It quotes claims of tokens that nothing vouches for.
        reason = repr(why[:_REFUSAL_CHARACTERS_MAX]) if why else "it gives no reason"
        log.info("the API server does not accept a bearer token: %s", reason)

    async def _review(self, token: str) -> User | None:
        manifest = {
            "apiVersion": TOKEN_REVIEWS.api_version,
            "kind": TOKEN_REVIEWS.kind,
            "spec": {"token": token},
        }
        reply = await self._client.create(TOKEN_REVIEWS, manifest)
        status = _decode_review(reply.body).status
        if not status.authenticated:
            self._log_refusal(status.error)
            return None
        user = status.user
        return User(
            name=user.username,
            uid=user.uid,
            groups=user.groups,
            extra=tuple(sorted(user.extra.items())),
        )


def _common_names(certificate: Mapping[str, Any]) -> Iterable[str]:
    """The common names of a certificate as `ssl` describes it."""
    for relative_name in certificate.get("subject", ()):
        for kind, value in relative_name:
            if kind == "commonName":
                yield value

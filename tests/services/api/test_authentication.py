"""The user of a request: when headers are believed, and which answers about tokens are kept."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from multidict import CIMultiDict

from services.api import authentication
from services.api.authentication import Authenticator, User, read_front_proxy
from services.api.errors import RequestFailed, TokenRefused
from shared.kube.errors import KubeError
from shared.runtime.serving_certificate import CertificateProblem
from tests.support.reachable import reachable
from tests.support.waiting import eventually

PROXY = {
    "requestheader-client-ca-file": "CA",
    "requestheader-allowed-names": '["front-proxy", "other"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}
HEADERS = [
    ("X-Remote-User", "ada"),
    ("X-Remote-Uid", "u-1"),
    ("X-Remote-Group", "one"),
    ("X-Remote-Group", "two"),
    ("X-Remote-Extra-Example.com%2fKey", "value"),
]


class ApiServer:
    """In place of the API server: the ConfigMap, and TokenReviews."""

    def __init__(self) -> None:
        self.data: dict[str, str] = dict(PROXY)
        self.reviews: list[str] = []
        self.error = ""
        self.failure: Exception | None = None
        self.accepts = "good"

    async def get(self, _resource: object, _name: str, kind: type, *, namespace: str) -> Any:
        assert namespace == "kube-system"
        return msgspec.convert({"data": self.data}, kind)

    async def create(self, _resource: object, manifest: Mapping[str, Any]) -> Any:
        token = manifest["spec"]["token"]
        self.reviews.append(token)
        if self.failure is not None:
            raise self.failure
        user = {"username": token.partition(".")[0], "groups": ["g"]}
        status = {
            "authenticated": token.startswith(self.accepts),
            "user": user,
            "error": self.error,
        }
        return SimpleNamespace(body=msgspec.json.encode({"status": status}))


class Trusting:
    """An authenticator that has read the ConfigMap."""

    def __init__(self) -> None:
        self.api = ApiServer()
        self.cas: list[str] = []
        self.users = Authenticator(self.api, self._trust)  # type: ignore[arg-type]

    def _trust(self, ca: str) -> None:
        if ca == "no certificate":
            raise CertificateProblem(ca)
        self.cas.append(ca)

    async def read(self) -> None:
        await self.users._read()

    async def user(self, *headers: tuple[str, str], certificate: str | None = None) -> User | int:
        """The user of a request, or the status of its refusal; the common name of the client's
        certificate.
        """
        subject = {"subject": ((("commonName", certificate),),)} if certificate else None
        request = SimpleNamespace(
            headers=CIMultiDict(headers), get_extra_info=lambda _name: subject
        )
        try:
            return await self.users.authenticate(request)  # type: ignore[arg-type]
        except RequestFailed as refused:
            return refused.status


@pytest.fixture
async def trusting() -> Trusting:
    trusting = Trusting()
    await trusting.read()
    return trusting


async def test_headers_name_the_user_behind_a_front_proxy_only(trusting: Trusting) -> None:
    assert trusting.cas == ["CA"]
    assert await trusting.user(*HEADERS, certificate="front-proxy") == User(
        name="ada", uid="u-1", groups=("one", "two"), extra=(("example.com/key", ("value",)),)
    )
    assert await trusting.user(*HEADERS) == 401
    assert await trusting.user(*HEADERS, certificate="a-node") == 401
    bearer = ("Authorization", "Bearer good-token")
    assert await trusting.user(bearer, *HEADERS) == User(name="good-token", groups=("g",))
    assert await trusting.user(bearer, *HEADERS, certificate="a-node") == User(
        name="good-token", groups=("g",)
    )


async def test_before_the_configmap_is_read_no_header_is_believed() -> None:
    assert await Trusting().user(*HEADERS, certificate="front-proxy") == 401


async def test_answers_about_tokens_are_kept_and_tokens_that_are_none_are_not_asked_about(
    trusting: Trusting,
) -> None:
    for token in ("good", "bad", "good", "bad"):
        found = await trusting.user(("Authorization", f"bearer {token}"))
        assert found == (401 if token == "bad" else User(name="good", groups=("g",)))
    for header in ("Bearer ", "Bearer   ", "Basic good", "good", f"Bearer {'x' * 40_000}"):
        assert await trusting.user(("Authorization", header)) == 401
    assert trusting.api.reviews == ["good", "bad"]


async def test_a_user_with_more_than_its_bytes_is_refused(trusting: Trusting) -> None:
    groups = [("X-Remote-Group", "g" * 1_000)] * 200
    headers = [("X-Remote-User", "ada"), *groups]
    assert await trusting.user(*headers, certificate="front-proxy") == 431
    assert await trusting.user(*headers[:50], certificate="front-proxy") != 431


async def test_tokens_that_differ_anywhere_have_users_of_their_own(trusting: Trusting) -> None:
    """The tokens of an issuer begin alike: with its header, its own name and the audience."""
    token = "good" + "aB" * 1_000
    others = [token[:place] + "-" + token[place + 1 :] for place in (4, 15, 16, 63, 255, 1_023)]
    others += [token[:-1], token + "a", token[:-1] + "-", token[:4] + token[4:].lower()]
    for one in (token, *others, token):
        found = await trusting.user(("Authorization", f"Bearer {one}"))
        assert found == User(name=one, groups=("g",))
    assert trusting.api.reviews == [token, *others]


async def test_no_token_is_kept_only_its_hash(trusting: Trusting) -> None:
    assert await trusting.user(("Authorization", "Bearer good-token.secret")) == User(
        name="good-token", groups=("g",)
    )
    assert await trusting.user(("Authorization", "Bearer good-token.secret"))
    assert trusting.api.reviews == ["good-token.secret"], "its answer is kept"
    assert not [text for text in reachable(trusting.users, str) if "secret" in text]
    hashes = list(reachable(trusting.users, bytes))
    assert hashes
    assert not [text for text in hashes if b"secret" in text]


async def test_a_token_that_cannot_be_checked_has_no_user_and_is_asked_about_again(
    trusting: Trusting,
) -> None:
    bearer = ("Authorization", "Bearer good")
    trusting.api.failure = KubeError("it is down")
    assert await trusting.user(bearer) == 503
    trusting.api.failure = None
    assert await trusting.user(bearer) == User(name="good", groups=("g",))


async def test_a_refusal_is_kept_for_ten_seconds_and_a_user_for_a_minute(
    trusting: Trusting, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    began_s = now_s = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now_s)
    for token in ("good", "bad"):
        await trusting.user(("Authorization", f"Bearer {token}"))
    # From now on the first token is withdrawn, and the second one accepted.
    trusting.api.accepts = "bad"
    now_s = began_s + 9.0
    assert await trusting.user(("Authorization", "Bearer bad")) == 401
    now_s = began_s + 20.0
    assert await trusting.user(("Authorization", "Bearer bad")) != 401
    assert await trusting.user(("Authorization", "Bearer good")) != 401
    now_s = began_s + 60.1
    assert await trusting.user(("Authorization", "Bearer good")) == 401


async def test_headers_without_a_user_name_none(trusting: Trusting) -> None:
    for headers in (HEADERS[1:], [("X-Remote-User", ""), *HEADERS[1:]]):
        assert await trusting.user(*headers, certificate="front-proxy") == 401


async def test_a_front_proxy_is_known_by_its_common_name_alone(trusting: Trusting) -> None:
    subject = {"subject": ((("organizationName", "front-proxy"),), (("commonName", "eve"),))}
    request = SimpleNamespace(headers=CIMultiDict(HEADERS), get_extra_info=lambda _name: subject)
    with pytest.raises(RequestFailed):
        await trusting.users.authenticate(request)  # type: ignore[arg-type]
    trusting.api.data["requestheader-allowed-names"] = "[]"
    await trusting.read()
    user = await trusting.users.authenticate(request)  # type: ignore[arg-type]
    assert user.name == "ada"


async def test_a_ca_is_trusted_before_any_front_proxy_is(trusting: Trusting) -> None:
    trusting.api.data |= {
        "requestheader-client-ca-file": "no certificate",
        "requestheader-allowed-names": '["eve"]',
    }
    with pytest.raises(CertificateProblem):
        await trusting.read()
    assert await trusting.user(*HEADERS, certificate="eve") == 401


async def test_a_refused_token_is_an_error_of_its_own_and_the_first_reason_is_logged(
    trusting: Trusting, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    trusting.api.error = 'expected audience "a"\ngot "' + "b" * 1_000
    for token in ("bad", "worse"):
        request = SimpleNamespace(
            headers=CIMultiDict([("Authorization", f"Bearer {token}")]),
            get_extra_info=lambda _name: None,
        )
        with pytest.raises(TokenRefused):
            await trusting.users.authenticate(request)  # type: ignore[arg-type]
    assert trusting.api.reviews == ["bad", "worse"]
    (line,) = [one for one in caplog.messages if "does not accept" in one]
    # Its text is one of strangers: on one line, and not too long.
    assert "expected audience" in line
    assert "\n" not in line
    assert len(line) < 600


async def test_a_ca_that_is_none_is_reported_and_the_last_one_stays(
    trusting: Trusting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(authentication, "READ_EVERY_S", 0.01)
    monkeypatch.setattr(authentication, "_READ_AGAIN_S", 0.01)
    trusting.api.data["requestheader-client-ca-file"] = "no certificate"
    running = asyncio.create_task(trusting.users.run())
    try:
        await eventually(lambda: "no certificate" in caplog.text)
        assert await trusting.user(*HEADERS, certificate="front-proxy") != 401
        trusting.api.data["requestheader-client-ca-file"] = "next"
        await eventually(lambda: trusting.cas == ["CA", "next"])
    finally:
        running.cancel()
    assert caplog.text.count("cannot be read") == 1


def test_a_list_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="requestheader-allowed-names: "):
        read_front_proxy({"requestheader-allowed-names": "front-proxy"})
    assert read_front_proxy({}).user_headers == ()

"""A small asynchronous client of the Kubernetes API for tests: JSON in, JSON out, no models.

Kept apart from the product's own client, so that one can test the other.
"""

import base64
import json
import ssl
import tempfile
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import yaml

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
CONNECTIONS_MAX = 64
# A watch event is one line; etcd takes objects of up to 1.5 MiB.
LINE_BYTES_MAX = 2**22
Object = dict[str, Any]


class ApiError(RuntimeError):
    """The API server refused: ``status`` is its HTTP status, the message its own words."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason


class RawClient:
    """An asynchronous context manager around one pool of connections."""

    def __init__(self, kubeconfig: Path) -> None:
        self.server, self._ssl, self._headers = _read_kubeconfig(kubeconfig)
        self._session: aiohttp.ClientSession | None = None

    @property
    def tls(self) -> ssl.SSLContext:
        """The context of its connections, for clients that must cost less than this one."""
        return self._ssl

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            self.server,
            connector=aiohttp.TCPConnector(ssl=self._ssl, limit=CONNECTIONS_MAX),
            headers=self._headers,
            read_bufsize=LINE_BYTES_MAX // 2,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._session is not None, "left without being entered"
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        body: Object | list[Object] | None = None,
        *,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
    ) -> Object:
        """Send one request and return the decoded answer.

        Raises:
            ApiError: the answer's status is 400 or above.
        """
        # Compact, as Go's clients: the API server stores opaque fields as they were sent, and takes
        # a later patch, which it encodes without spaces, for a change of them.
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = {"Content-Type": content_type} if data is not None else None
        async with self._open.request(
            method, path, data=data, headers=headers, params=params
        ) as response:
            text = await response.text()
            if response.status >= 400:
                raise _error(response.status, text)
            return dict(json.loads(text))

    async def get(self, path: str, **params: str) -> Object:
        """Get an object or a list."""
        return await self.request("GET", path, params=params)

    async def text(self, path: str) -> str:
        """Get something that is not JSON, such as ``/metrics`` or ``/readyz``."""
        async with self._open.get(path) as response:
            response.raise_for_status()
            return await response.text()

    async def create(self, path: str, body: Object) -> Object:
        """Create an object in a collection."""
        return await self.request("POST", path, body)

    async def patch(self, path: str, body: Object, content_type: str = MERGE_PATCH) -> Object:
        """Patch an object, with a merge patch by default."""
        return await self.request("PATCH", path, body, content_type=content_type)

    async def delete(self, path: str, body: Object | None = None) -> Object:
        """Delete an object, or a collection; the body holds DeleteOptions."""
        return await self.request("DELETE", path, body)

    async def watch(self, path: str, **params: str) -> AsyncGenerator[tuple[str, Object], None]:
        """Yield (type, object) of each event until the server closes the watch.

        Raises:
            ApiError: the watch was refused, or an ERROR event came (such as 410).
        """
        timeout = aiohttp.ClientTimeout(total=None)
        query = {"watch": "true", **params}
        async with self._open.get(path, params=query, timeout=timeout) as response:
            if response.status >= 400:
                raise _error(response.status, await response.text())
            while line := await response.content.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise _error(event["object"].get("code", 500), json.dumps(event["object"]))
                yield event["type"], event["object"]

    @property
    def _open(self) -> aiohttp.ClientSession:
        assert self._session is not None, "used outside of its async with block"
        return self._session


def connection_of(kubeconfig: Path) -> tuple[str, bytes]:
    """The API server's address and the PEM of its CA, from a file that `write_kubeconfig` wrote."""
    cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    return cluster["server"], base64.b64decode(cluster["certificate-authority-data"])


def _error(status: int, text: str) -> ApiError:
    try:
        answer = json.loads(text)
    except ValueError:
        answer = {}
    if not isinstance(answer, dict):
        answer = {}
    return ApiError(status, str(answer.get("reason", "")), str(answer.get("message", text[:500])))


def _read_kubeconfig(path: Path) -> tuple[str, ssl.SSLContext, dict[str, str]]:
    """Read the only cluster and user of a file that ``kubeconfig.write_kubeconfig`` wrote, or of
    an embedded cluster's, which is plain HTTP.
    """
    config = yaml.safe_load(path.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    if cluster["server"].startswith("http://"):
        token = user.get("token")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return cluster["server"], ssl.create_default_context(), headers
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode("ascii")
    context = ssl.create_default_context(cadata=authority)
    if "token" in user:
        return cluster["server"], context, {"Authorization": f"Bearer {user['token']}"}
    # The ssl module reads a client's certificate from a file only.
    with tempfile.NamedTemporaryFile(suffix=".pem") as pem:
        pem.write(base64.b64decode(user["client-certificate-data"]))
        pem.write(base64.b64decode(user["client-key-data"]))
        pem.flush()
        context.load_cert_chain(pem.name)
    return cluster["server"], context, {}

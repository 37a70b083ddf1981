"""A bare client of the API for the suite: status, body and warnings as they came, no retries."""

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import yaml

Obj = dict[str, Any]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
EVENT_TIMEOUT_S = 10.0


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: Obj
    warnings: list[str]

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Events:
    """An open watch."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    async def next(self) -> tuple[str, Obj]:
        """The next event; fails where none comes in time, raises EOFError at the watch's end."""
        async with asyncio.timeout(EVENT_TIMEOUT_S):
            line = await self._content.readline()
        if not line:
            raise EOFError
        event = json.loads(line)
        return event["type"], event["object"]

    async def next_name(self) -> tuple[str, str]:
        """(type, name) of the next event."""
        return (await self.take(1))[0]

    async def take(self, count: int) -> list[tuple[str, str]]:
        """(type, name) of that many events."""
        events = [await self.next() for _ in range(count)]
        return [(kind, obj["metadata"]["name"]) for kind, obj in events]


class Client:
    """Requests over one session."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = JSON,
        **query: str,
    ) -> Answer:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type} if data is not None else {}
        return await self._send(method, path, data, headers, query)

    async def get_with_headers(self, path: str, headers: Mapping[str, str]) -> Answer:
        return await self._send("GET", path, None, headers, {})

    async def _send(
        self,
        method: str,
        path: str,
        data: bytes | str | None,
        headers: Mapping[str, str],
        query: Mapping[str, str],
    ) -> Answer:
        async with self._session.request(
            method, path, data=data, headers=headers, params=query
        ) as response:
            warnings = [
                json.loads(text.partition(" - ")[2])
                for text in response.headers.getall("Warning", ())
            ]
            # An address that nothing serves is answered by plain text.
            text = await response.text()
            answer: Obj = json.loads(text) if response.content_type == JSON else {"message": text}
            return Answer(response.status, answer, warnings)

    async def get(self, path: str, **query: str) -> Answer:
        return await self.call("GET", path, **query)

    async def create(self, path: str, body: Obj, **query: str) -> Obj:
        """Creates, and insists on success."""
        answer = await self.call("POST", path, body, **query)
        assert answer.status == 201, answer
        return answer.body

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> Answer:
        return await self.call("PATCH", path, body, content_type=content_type)

    async def names(self, path: str, **query: str) -> list[str]:
        """The names in a list, as it orders them."""
        answer = await self.get(path, **query)
        assert answer.status == 200, answer
        return [item["metadata"]["name"] for item in answer.body["items"]]

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Events]:
        params = {"watch": "1", **query}
        async with self._session.get(path, params=params) as response:
            assert response.status == 200, await response.text()
            yield Events(response.content)


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Client]:
    """A client by a kubeconfig: an address, and perhaps a client certificate."""
    config = yaml.safe_load(kubeconfig.read_text())  # noqa: ASYNC240 - a local file, once
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    trust: ssl.SSLContext | bool = True
    if "certificate-authority-data" in cluster:
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        trust = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile(suffix=".pem") as pem:
            for key in ("client-certificate-data", "client-key-data"):
                pem.write(base64.b64decode(user[key]))
            pem.flush()
            trust.load_cert_chain(pem.name)
    async with aiohttp.ClientSession(
        cluster["server"], connector=aiohttp.TCPConnector(ssl=trust, limit=0), read_bufsize=2**21
    ) as session:
        yield Client(session)

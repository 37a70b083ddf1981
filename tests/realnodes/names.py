"""The cluster's names: a server of DNS for Services and for pods with a host name.

    python -m tests.realnodes.names KUBECONFIG ADDRESS

It stands where a cluster has CoreDNS, outside of the nodes, so that no test depends on which node
carries it. Only addresses of version 4 are answered, from lists that are read twice a second.
"""

import asyncio
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from typing_extensions import override

from tests.controlplane.client import ApiError, Object, RawClient

_PORT: Final = 53
_READ_S: Final = 0.5
_TTL_S: Final = 1
_ZONE: Final = "svc.cluster.local"
_SLICES: Final = "/apis/discovery.k8s.io/v1/endpointslices"
_HEADER: Final = struct.Struct("!6H")
#: An answer, authoritative, with recursion asked and available.
_ANSWER: Final = 0x8580
_NO_SUCH_NAME: Final = 3
_TYPE_A, _CLASS_IN = 1, 1
#: Points at the name in the question, which follows the header.
_SAME_NAME: Final = 0xC000 + _HEADER.size

Records = dict[str, list[str]]


class NameServer(asyncio.DatagramProtocol):
    """Answers each question from the records at hand."""

    def __init__(self) -> None:
        self.records: Records = {}
        self._transport: asyncio.DatagramTransport | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what sends answers."""
        # Not `isinstance`: the event loop's own class is none by inheritance in Python 3.11.
        self._transport = cast("asyncio.DatagramTransport", transport)

    @override
    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer one question."""
        assert self._transport is not None, "a question before the socket was ready"
        self._transport.sendto(answer(data, self.records), addr)


def answer(question: bytes, records: Records) -> bytes:
    """Return the answer to a question: addresses, none of this type, or no such name."""
    number = _HEADER.unpack_from(question)[0]
    name, end = _name(question, _HEADER.size)
    kind, _ = struct.unpack_from("!2H", question, end)
    addresses = records.get(name)
    found = addresses if addresses and kind == _TYPE_A else []
    flags = _ANSWER if addresses is not None else _ANSWER | _NO_SUCH_NAME
    header = _HEADER.pack(number, flags, 1, len(found), 0, 0)
    rows = b"".join(
        struct.pack("!3HIH", _SAME_NAME, _TYPE_A, _CLASS_IN, _TTL_S, 4) + socket.inet_aton(one)
        for one in found
    )
    return header + question[_HEADER.size : end + 4] + rows


def records_of(services: list[Object], slices: list[Object]) -> Records:
    """Return every name with its addresses."""
    records: Records = {}
    headless: set[tuple[str, str]] = set()
    for service in services:
        name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        address = service["spec"].get("clusterIP", "")
        if address == "None":
            headless.add((namespace, name))
        elif address:
            records[f"{name}.{namespace}.{_ZONE}"] = [address]
    for piece in slices:
        namespace = piece["metadata"]["namespace"]
        name = (piece["metadata"].get("labels") or {}).get("kubernetes.io/service-name", "")
        if (namespace, name) in headless:
            for host, address in _endpoints(piece):
                full = ".".join(part for part in (host, name, namespace, _ZONE) if part)
                records.setdefault(full, []).append(address)
    return records


def _endpoints(piece: Object) -> Iterator[tuple[str, str]]:
    """Each ready address under the Service's own name, and under its pod's host name."""
    for endpoint in piece.get("endpoints") or ():
        if (endpoint.get("conditions") or {}).get("ready", True):
            for address in endpoint["addresses"]:
                yield "", address
                if endpoint.get("hostname"):
                    yield endpoint["hostname"], address


def _name(message: bytes, offset: int) -> tuple[str, int]:
    labels: list[str] = []
    while length := message[offset]:
        labels.append(message[offset + 1 : offset + 1 + length].decode("ascii").lower())
        offset += 1 + length
    return ".".join(labels), offset + 1


async def serve(kubeconfig: Path, address: str) -> None:
    """Answer until the process is ended."""
    loop = asyncio.get_running_loop()
    _, server = await loop.create_datagram_endpoint(NameServer, local_addr=(address, _PORT))
    async with RawClient(kubeconfig) as api:
        while True:
            try:
                services = (await api.get("/api/v1/services"))["items"]
                slices = (await api.get(_SLICES))["items"]
            except (OSError, ApiError) as error:
                sys.stderr.write(f"the names stay as they are: {error}\n")
            else:
                server.records = records_of(services, slices)
            await asyncio.sleep(_READ_S)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2]))

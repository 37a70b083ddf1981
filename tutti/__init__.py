"""The command line `tutti`, and the Python client: `from tutti import Client, AsyncClient`.

The client is imported on its first use, so that `tutti --help` does not wait for it. The packages
of the command line are `cli` and the folders here; `client` is documented in docs/client.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from shared.kube.errors import ApiError as ApiError
    from shared.kube.errors import KubeError as KubeError
    from tutti.api.failures import Refusal as Refusal
    from tutti.client.asynchronous import AsyncClient as AsyncClient
    from tutti.client.gangs import ApiNotServed as ApiNotServed
    from tutti.client.gangs import GangDeleted as GangDeleted
    from tutti.client.gangs import GangEvent as GangEvent
    from tutti.client.gangs import WaitTimeout as WaitTimeout
    from tutti.client.submission import Submitted as Submitted
    from tutti.client.synchronous import Client as Client

#: The names of the client, and the modules that define them.
_CLIENT: Final = {
    "ApiError": "shared.kube.errors",
    "KubeError": "shared.kube.errors",
    "Refusal": "tutti.api.failures",
    "AsyncClient": "tutti.client.asynchronous",
    "ApiNotServed": "tutti.client.gangs",
    "GangDeleted": "tutti.client.gangs",
    "GangEvent": "tutti.client.gangs",
    "WaitTimeout": "tutti.client.gangs",
    "Submitted": "tutti.client.submission",
    "Client": "tutti.client.synchronous",
}


def __getattr__(name: str) -> object:
    if name not in _CLIENT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    member: object = getattr(import_module(_CLIENT[name]), name)
    globals()[name] = member
    return member


def __dir__() -> list[str]:
    return sorted({*globals(), *_CLIENT})

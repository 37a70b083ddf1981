"""The command line `tutti`, and the Python client: `from tutti import Client, AsyncClient`.

The client is imported on its first use, so that `tutti --help` does not wait for it. The packages
of the command line are `cli` and the folders here; `client` is documented in docs/client.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tutti.client import ApiError as ApiError
    from tutti.client import ApiNotServed as ApiNotServed
    from tutti.client import AsyncClient as AsyncClient
    from tutti.client import Client as Client
    from tutti.client import GangDeleted as GangDeleted
    from tutti.client import GangEvent as GangEvent
    from tutti.client import KubeError as KubeError
    from tutti.client import Refusal as Refusal
    from tutti.client import Submitted as Submitted
    from tutti.client import WaitTimeout as WaitTimeout

#: The client's names, which `tutti.client` defines.
_CLIENT: Final = frozenset(
    {
        "ApiError",
        "ApiNotServed",
        "AsyncClient",
        "Client",
        "GangDeleted",
        "GangEvent",
        "KubeError",
        "Refusal",
        "Submitted",
        "WaitTimeout",
    }
)


def __getattr__(name: str) -> object:
    if name not in _CLIENT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module("tutti.client"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_CLIENT})

"""The Python client: submit gangs, wait for them, read why they wait and whether others would fit.

`AsyncClient` has the methods, `Client` the same ones without asyncio. Objects are those of the API
`visibility.tutti.dev` (`shared.contracts.visibility`), which it reads with the user's kubeconfig,
or the service account of a pod. docs/client.md shows it.
"""

from shared.kube.errors import ApiError, KubeError
from tutti.api.failures import Refusal
from tutti.client.asynchronous import AsyncClient
from tutti.client.gangs import ApiNotServed, GangDeleted, GangEvent, WaitTimeout
from tutti.client.submission import Submitted
from tutti.client.synchronous import Client

__all__ = [
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
]

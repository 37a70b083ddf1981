"""Names and marks of the registration of `visibility.tutti.dev` with the API server (ADR 0092).

services/api writes it. `tutti up` deletes one that an API service of a `tutti up` left behind.
"""

from typing import Final

from shared.contracts.visibility import GROUP, VERSION

#: Name of the APIService.
API_SERVICE: Final = f"{VERSION}.{GROUP}"
#: Namespace and name of the Service that leads to the API service of `tutti up`.
UP_SERVICE: Final = ("kube-system", "tutti-up-api")
#: Label of the APIService and of this Service: what maintains it. `tutti up` and its API service
#: change and delete objects with the value `TUTTI_UP` only.
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
TUTTI_UP: Final = "tutti-up"
#: The value on an APIService that a replica of the chart has written.
TUTTI: Final = "tutti"

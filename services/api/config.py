"""Settings of the API service."""

from typing import Annotated

from msgspec import Meta

from shared.dialects.discovery import scheduler_names
from shared.runtime.settings import JAEGER_URL, ServingSettings


class ApiSettings(ServingSettings, frozen=True, kw_only=True):
    """The API service's settings."""

    scheduler_name: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description="scheduler names that are ours; for manifests of fits"),
    ] = scheduler_names()
    host: Annotated[str, Meta(description="address that requests are answered on")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="its port; 0: any free one")] = 8444
    register: Annotated[
        bool, Meta(description="register the APIService, so that kubectl finds the API")
    ] = True
    service_name: Annotated[
        str,
        Meta(min_length=1, description="Service by which the API server finds us"),
    ] = "tutti-api"
    service_namespace: Annotated[str, Meta(min_length=1, description="its namespace")] = (
        "kube-system"
    )
    service_port: Annotated[
        int, Meta(ge=1, le=65535, description="port of the Service; with --external: our own port")
    ] = 443
    external: Annotated[
        str,
        Meta(
            description="host name or address of this machine, as the API server reaches it: make "
            "the Service, of type ExternalName; empty: the Service exists"
        ),
    ] = ""
    owner_cluster_role: Annotated[
        str, Meta(description="ClusterRole that the APIService belongs to; empty: none")
    ] = ""
    watches_max: Annotated[
        int, Meta(ge=1, le=10_000, description="watches at the same time; further ones get 429")
    ] = 1_000
    watches_of_user_max: Annotated[
        int, Meta(ge=1, le=10_000, description="likewise, those of one user")
    ] = 100
    jaeger_url: Annotated[
        str,
        Meta(
            pattern=JAEGER_URL,
            description="Jaeger's user interface as users reach it: gangs link to their traces; "
            "empty: no links",
        ),
    ] = ""

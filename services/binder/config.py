"""Settings of the binder."""

from typing import Annotated

from msgspec import Meta

from shared.runtime.settings import KubeSettings


class BinderSettings(KubeSettings, frozen=True, kw_only=True):
    """A binder's settings."""

    #: Reached by gangs of one pod, and while members are retried; otherwise the queue of requests
    #: limits them first.
    decisions_max: Annotated[
        int, Meta(ge=1, le=1024, description="decisions carried out at the same time")
    ] = 64
    #: Measured against a kube-apiserver on two cores: 8 connections bind 1,330 pods a second, 32
    #: bind 1,850, more only wait longer in the server.
    posts_max: Annotated[
        int, Meta(ge=1, le=1024, description="requests to the API server at the same time")
    ] = 32
    #: A healthy provisioner takes half a minute. kube-scheduler waits for ten minutes, but there no
    #: other members of a gang wait with it.
    claims_wait_s: Annotated[
        float,
        Meta(gt=0, le=3600, description="time for controllers to complete a decision's claims"),
    ] = 120.0
    #: As kube-scheduler.
    binding_conditions_wait_s: Annotated[
        float,
        Meta(gt=0, le=3600, description="time for the binding conditions of devices to be true"),
    ] = 600.0
    #: The API server itself gives up on etcd after a few seconds.
    request_timeout_s: Annotated[
        float, Meta(gt=0, le=60, description="time for one request to the API server")
    ] = 5.0

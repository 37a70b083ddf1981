"""Settings of a process: one frozen struct, filled from flags and the environment, refused with name and rule."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

S = TypeVar("S", bound=msgspec.Struct)


class CommonSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What every service can be told. A service's settings inherit it: `class S(CommonSettings, frozen=True, kw_only=True)`."""

    nats_url: Annotated[str, Meta(min_length=1, description="NATS servers, separated by commas")] = (
        "nats://127.0.0.1:4222"
    )
    nats_credentials: Annotated[str, Meta(description="file with NATS credentials or an nkey seed")] = ""
    nats_ca: Annotated[str, Meta(description="file with the CA of the NATS servers")] = ""
    instance: Annotated[str, Meta(description="name of this instance; default: SERVICE-ORDINAL")] = ""
    ordinal: Annotated[int, Meta(ge=-1, description="number of this replica; -1: from the host's name")] = -1
    http_host: Annotated[str, Meta(description="address of /healthz, /readyz, /metrics")] = "127.0.0.1"
    http_port: Annotated[int, Meta(ge=0, le=65535, description="its port; 0: any free one")] = 0
    log_format: Annotated[Literal["json", "text"], Meta(description="one JSON object or plain text per line")] = "json"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="least level that is logged")
    ] = "info"
    otlp_endpoint: Annotated[str, Meta(description="OTLP/HTTP endpoint for traces; empty: none")] = ""
    shutdown_grace_s: Annotated[float, Meta(gt=0, description="time to finish work after SIGTERM")] = 10.0


class KubeSettings(CommonSettings, frozen=True, kw_only=True):
    """The same for services that talk to the API server; with both empty the pod's service account is used."""

    kubeconfig: Annotated[str, Meta(description="kubeconfig file")] = ""
    context: Annotated[str, Meta(description="context in it; empty: the current one")] = ""


class SettingsError(Exception):
    """A setting is unknown or breaks its rule; the text names both, and where it came from."""


def parse(kind: type[S], argv: Sequence[str], environ: Mapping[str, str]) -> S:
    """Fill `kind` from flags (`--nats-url X`, lists by repeating or commas, `--x/--no-x`) over `TUTTI_NATS_URL`.

    Raises:
        SettingsError: See there.
    """
    raise NotImplementedError


def load(kind: type[S], argv: Sequence[str], environ: Mapping[str, str], prog: str) -> S:
    """`parse`, for a `__main__`: answers `--help`, and on an error prints it and exits with status 2."""
    raise NotImplementedError


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting, for the documentation."""

    flag: str
    variable: str
    default: str
    rule: str
    description: str


def describe(kind: type[msgspec.Struct]) -> list[Setting]:
    """All settings of `kind`, in order."""
    raise NotImplementedError

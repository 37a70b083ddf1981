"""Settings of a process: one frozen struct, filled from flags and environment variables.

Each field is a setting. Its type and `msgspec.Meta` (description, bounds) are its rule; its name
makes the flag (`--nats-url`) and the variable (`TUTTI_NATS_URL`). Flags have precedence. An error
names the setting and its rule.
"""

import argparse
import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta
from typing_extensions import override

from shared.runtime.logs import HIDDEN, without_secrets

#: Credentials have no place in it: see docs/tracing.md. Empty: none.
OTLP_ENDPOINT: Final = r"^(https?://[^@\s]+)?\Z"
OTLP_ENDPOINT_RULE: Final = "must be http:// or https://, without credentials"
#: A path is appended to it, and the console makes a link of it. Empty: none.
JAEGER_URL: Final = r"^(https?://[^/@?#\s]+(/[^@?#\s]*)?)?\Z"
JAEGER_URL_RULE: Final = "must be http:// or https://, without credentials, query and fragment"


S = TypeVar("S", bound=msgspec.Struct)

PREFIX: Final = "TUTTI_"
EXIT_STATUS: Final = 2
#: Name of a setting with a secret, or (`_file`, `_dir`) with the path of one.
_SECRET: Final = re.compile(r"password|passwd|secret|token|private|seed", re.IGNORECASE)


class CommonSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of every service.

    A service's settings inherit it: `class S(CommonSettings, frozen=True, kw_only=True)`.
    """

    nats_url: Annotated[
        str, Meta(min_length=1, description="NATS servers, separated by commas")
    ] = "nats://127.0.0.1:4222"
    nats_credentials: Annotated[
        str, Meta(description="file with NATS credentials or an nkey seed")
    ] = ""
    nats_ca: Annotated[
        str, Meta(description="file with the CA of the NATS servers, which may be replaced")
    ] = ""
    nats_user: Annotated[
        str, Meta(description="NATS user, after which inboxes are named; empty: the service's name")
    ] = ""
    instance: Annotated[str, Meta(description="name of this instance; empty: SERVICE-ORDINAL")] = ""
    ordinal: Annotated[
        int, Meta(ge=-1, description="number of this replica; -1: from the host's name, else 0")
    ] = -1
    http_host: Annotated[str, Meta(description="address of /healthz, /readyz, /metrics")] = (
        "127.0.0.1"
    )
    http_port: Annotated[int, Meta(ge=0, le=65535, description="its port; 0: any free one")] = 0
    log_format: Annotated[
        Literal["json", "text"], Meta(description="one JSON object or plain text per line")
    ] = "json"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="least level logged")
    ] = "info"
    otlp_endpoint: Annotated[
        str,
        Meta(
            pattern=OTLP_ENDPOINT,
            description="OTLP/HTTP endpoint for traces, http://host:4318; empty: none",
        ),
    ] = ""
    trace_ratio: Annotated[
        float,
        Meta(ge=0, le=1, description="share of traces that is exported, the same in every service"),
    ] = 1.0
    shutdown_grace_s: Annotated[
        float, Meta(gt=0, description="seconds to finish work after SIGTERM")
    ] = 10.0


class KubeSettings(CommonSettings, frozen=True, kw_only=True):
    """The same for services that talk to the API server.

    With both empty the pod's service account is used.
    """

    kubeconfig: Annotated[str, Meta(description="kubeconfig file; empty: in-cluster")] = ""
    context: Annotated[str, Meta(description="context in it; empty: the current one")] = ""


class ServingSettings(KubeSettings, frozen=True, kw_only=True):
    """The same for services that answer the API server over HTTPS."""

    cert_dir: Annotated[
        str,
        Meta(
            description="folder of our own CA and certificate; empty: temporary, new at each start"
        ),
    ] = ""
    tls_cert_file: Annotated[
        str, Meta(description="certificate chain to use instead of one of our own")
    ] = ""
    tls_key_file: Annotated[str, Meta(description="its key")] = ""
    ca_file: Annotated[str, Meta(description="the CA that signed it")] = ""

    def __post_init__(self) -> None:
        """Check the settings together. Raises SettingsError: some contradict each other."""
        files = (self.tls_cert_file, self.tls_key_file, self.ca_file)
        if any(files) and not all(files):
            raise SettingsError(
                "--tls-cert-file, --tls-key-file and --ca-file: must be given together"
            )


class SettingsError(Exception):
    """A setting is unknown or breaks its rule; the text names the setting, its source and rule."""


class Setting(msgspec.Struct, frozen=True):
    """One setting: a field of a settings struct, with its annotation taken apart."""

    name: str
    annotation: Any
    kind: Any
    meta: Meta
    #: What the field has without flag and variable; `msgspec.NODEFAULT` if it is required.
    unset: Any

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def is_list(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def description(self) -> str:
        return self.meta.description or ""

    @property
    def default(self) -> str:
        """The default, as text for users."""
        if self.unset is msgspec.NODEFAULT:
            return "none, required"
        if isinstance(self.unset, tuple):
            return ",".join(str(item) for item in self.unset) or "empty"
        return str(self.unset) if self.unset != "" else "empty"

    @property
    def rule(self) -> str:
        """Its type and bounds, as text for users."""
        kind, meta = self.kind, self.meta
        if get_origin(kind) is Literal:
            return " | ".join(str(choice) for choice in get_args(kind))
        if self.is_list:
            item = get_args(kind)[0]
            return f"list of {getattr(item, '__origin__', item).__name__}"
        bounds = {">=": meta.ge, ">": meta.gt, "<=": meta.le, "<": meta.lt}
        parts = [f"{sign} {bound}" for sign, bound in bounds.items() if bound is not None]
        if meta.min_length:
            parts.append("not empty")
        return " ".join([getattr(kind, "__name__", str(kind)), ", ".join(parts)]).strip()

    def read(self, raw: str | Sequence[str] | bool, source: str) -> object:
        """Convert a flag's or variable's value. Raises SettingsError if it breaks the rule."""
        value: object = raw
        if self.is_list:
            parts = [raw] if isinstance(raw, str) else raw if isinstance(raw, Sequence) else []
            value = [item.strip() for part in parts for item in part.split(",") if item.strip()]
        try:
            return msgspec.convert(value, self.annotation, strict=False)
        except msgspec.ValidationError as error:
            raise SettingsError(f"{source}: {error} (given: {raw!r})") from None


class _Parser(argparse.ArgumentParser):
    """Raises instead of exiting."""

    @override
    def error(self, message: str) -> NoReturn:
        raise SettingsError(message)


def parse(kind: type[S], argv: Sequence[str], environ: Mapping[str, str], prog: str = "") -> S:
    """Fill `kind` from flags over variables.

    Lists are given by repeating a flag or by commas, booleans by `--x` and `--no-x` (variables:
    true, false, 1, 0). An unknown variable with our prefix is ignored, since it may be another
    service's (`unknown_variables` lists them). With `prog`, the program's name, `--help` is
    answered.

    Raises:
        SettingsError: A flag is unknown, or a value breaks its rule.
    """
    return _build(kind, vars(_parser(kind, prog).parse_args(list(argv))), environ)


def load(kind: type[S], argv: Sequence[str], environ: Mapping[str, str], prog: str) -> S:
    """`parse`, for a `__main__`: on an error prints it and exits with 2."""
    try:
        settings = parse(kind, argv, environ, prog)
    except SettingsError as error:
        sys.stderr.write(f"{prog}: {error}\n")
        raise SystemExit(EXIT_STATUS) from None
    for name, hint in unknown_variables(kind, environ).items():
        meant = f"; {hint} is" if hint else ""
        sys.stderr.write(f"{prog}: {name} is no setting of this service{meant}\n")
    return settings


def unknown_variables(kind: type[msgspec.Struct], environ: Mapping[str, str]) -> dict[str, str]:
    """Variables with our prefix that are no settings of `kind`, each with the most similar variable
    that is one, or "".
    """
    known = [field.variable for field in describe(kind)]
    return {
        name: next(iter(difflib.get_close_matches(name, known, 1)), "")
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in known
    }


def describe(kind: type[msgspec.Struct]) -> list[Setting]:
    """All settings of `kind`, in order."""
    settings = []
    for field in msgspec.structs.fields(kind):
        annotation: Any = field.type
        metas = [m for m in getattr(annotation, "__metadata__", ()) if isinstance(m, Meta)]
        inner = annotation.__origin__ if metas else annotation
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        meta = metas[0] if metas else Meta()
        settings.append(Setting(field.name, annotation, inner, meta, default))
    return settings


def _build(kind: type[S], flags: Mapping[str, Any], environ: Mapping[str, str]) -> S:
    values: dict[str, object] = {}
    for field in describe(kind):
        if flags[field.name] is not None:
            values[field.name] = field.read(flags[field.name], field.flag)
        elif field.variable in environ:
            values[field.name] = field.read(environ[field.variable], field.variable)
        elif field.unset is msgspec.NODEFAULT:
            raise SettingsError(f"{field.flag} (or {field.variable}) is required")
    return kind(**values)


def _parser(kind: type[msgspec.Struct], prog: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=prog or None,
        description=(kind.__doc__ or "").strip().split("\n")[0],
        allow_abbrev=False,
        add_help=bool(prog),
    )
    for field in describe(kind):
        text = f"{field.description} [{field.rule}; default: {field.default}]"
        options: dict[str, Any] = {"dest": field.name, "default": None}
        options["help"] = text.replace("%", "%%")
        if field.kind is bool:
            options["action"] = argparse.BooleanOptionalAction
        elif field.is_list:
            options |= {"action": "append", "metavar": "X"}
        else:
            options["metavar"] = "X"
        parser.add_argument(field.flag, **options)
    return parser


def visible_settings(settings: msgspec.Struct) -> dict[str, str]:
    """Every setting by name, in the order of its fields, as a process logs it for operators.

    Names of files with keys and credentials are shown as they are set. Credentials inside a URL,
    and values of settings whose names contain "secret" or the like, are replaced by `HIDDEN`.
    """
    shown: dict[str, str] = {}
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        text = ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        if _SECRET.search(name) and not name.endswith(("_file", "_dir")):
            shown[name] = HIDDEN if text else ""
        else:
            shown[name] = without_secrets(text)
    return shown

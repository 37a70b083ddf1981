"""Credentials for the API server, kept valid for as long as the process lives.

`load` finds the access (a kubeconfig, or the service account of the pod); `Credentials` returns the
headers and the TLS context for the next request. Token files are read again every minute, plugins
run again before their credentials expire, and both also after the API server refused the
credentials (401), at a bounded rate.

`kubeconfig` reads the files. Only `exec` and `auth-provider` need kubernetes_asyncio, whose import
costs 0.36 s and 45 MB, so they run in a short-lived process (`resolve_credentials`).
"""

import asyncio
import base64
import logging
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
from multidict import CIMultiDict, CIMultiDictProxy

from shared.kube.errors import CredentialsError
from shared.kube.kubeconfig import Access, read_access
from shared.kube.resolve_credentials import Resolved, Unresolved

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

#: Bound tokens live an hour at least and are rotated at 80 % of it, so a minute is early enough.
_TOKEN_FILE_S: Final = 60.0
#: A plugin's credentials are renewed this long before they expire: time to run the plugin, and a
#: margin for clocks that differ.
_EXPIRY_MARGIN_S: Final = 30.0
#: After a 401 the source is read again, but not more often than this: a plugin may use a paid
#: service, and a refused token would otherwise cost a file read per request.
_PLUGIN_PAUSE_S: Final = 10.0
_TOKEN_FILE_PAUSE_S: Final = 1.0
#: Limits a plugin that waits for an interactive login.
_PLUGIN_TIMEOUT_S: Final = 60.0

_log = logging.getLogger(__name__)


class Authorization:
    """Headers and TLS context of requests, compared by identity: a new object for each secret."""

    def __init__(self, headers: CIMultiDict[str], tls: ssl.SSLContext | None) -> None:
        self.headers: Final = CIMultiDictProxy(headers)
        #: None for plain http.
        self.tls: Final = tls
        self._by_type: dict[str, CIMultiDictProxy[str]] = {}

    def headers_for(self, content_type: str) -> CIMultiDictProxy[str]:
        """The headers, with the type of a body; cached, since there are few types."""
        known = self._by_type.get(content_type)
        if known is None:
            headers = CIMultiDict(self.headers)
            headers["Content-Type"] = content_type
            known = self._by_type[content_type] = CIMultiDictProxy(headers)
        return known


async def load(
    kubeconfig: str = "",
    context: str = "",
    *,
    server: str = "",
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> "Credentials":
    """Credentials from the first of: the kubeconfig given, which must exist, `$KUBECONFIG`,
    ~/.kube/config, the service account of the pod.

    `context` is the name of one in the kubeconfig; "" for the current one. `server` is a URL to use
    in place of the one found there (kubectl's --server).

    Raises:
        CredentialsError: There are none, or they are invalid: names file, field and rule.
    """
    access = await asyncio.to_thread(find_access, kubeconfig, context, environ, service_account)
    if server:
        if not server.startswith(("https://", "http://")):
            raise CredentialsError(f"server {server!r}: must start with https:// or http://")
        access = msgspec.structs.replace(access, server=server.rstrip("/"))
    credentials = Credentials(access)
    await credentials.refresh()
    return credentials


def find_access(
    kubeconfig: str, context: str, environ: Mapping[str, str], service_account: Path
) -> Access:
    """The access that `load` uses; blocking, it reads files. Raises CredentialsError."""
    if kubeconfig:
        return read_access([Path(kubeconfig).expanduser()], context, must_exist=True)
    listed = [Path(name) for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    if listed and any(path.exists() for path in listed):
        return read_access(listed, context, must_exist=False)
    if listed:
        raise CredentialsError(f"$KUBECONFIG: no such file: {', '.join(map(str, listed))}")
    home = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    if home.exists():
        return read_access([home], context, must_exist=True)
    if "KUBERNETES_SERVICE_HOST" in environ:
        return in_cluster_access(environ, service_account)
    raise CredentialsError(
        f"no cluster: give --kubeconfig, set $KUBECONFIG, make {home}, or run in a pod"
    )


def in_cluster_access(environ: Mapping[str, str], service_account: Path) -> Access:
    """The access of a pod's service account; blocking, it reads files. Raises CredentialsError."""
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    if ":" in host:
        host = f"[{host}]"
    namespace = service_account / "namespace"
    return Access(
        origin=f"service account in {service_account}",
        server=f"https://{host}:{port}",
        namespace=_read(namespace).decode().strip() if namespace.exists() else "default",
        ca_pem=_read(service_account / "ca.crt"),
        token_file=str(service_account / "token"),
    )


class Credentials:
    """The current authorization. One per process; tasks of one event loop may share it."""

    def __init__(
        self,
        access: Access,
        *,
        wall_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        #: Base URL of the API server, without trailing slash.
        self.server: Final = access.server
        #: The namespace of the context or of the service account.
        self.namespace: Final = access.namespace
        #: Name to expect in the server's certificate; "" for the URL's host.
        self.tls_server_name: Final = access.tls_server_name
        self._access = access
        self._wall_s = wall_s
        self._monotonic_s = monotonic_s
        self._renewing = asyncio.Lock()
        self._current: Authorization | None = None
        self._secret = Resolved()
        self._fresh_until_s = 0.0
        self._pause_s = _TOKEN_FILE_PAUSE_S if access.token_file else _PLUGIN_PAUSE_S
        self._renewed_s = -self._pause_s

    def fresh(self) -> Authorization | None:
        """The present authorization; None when `refresh` must be awaited first. Costs nothing."""
        return self._current if self._monotonic_s() < self._fresh_until_s else None

    async def refresh(self) -> Authorization:
        """Bring the authorization up to date.

        When the source fails while its last credentials may still be valid, they are kept, and the
        source is read again after a pause.

        Raises:
            CredentialsError: There is nothing usable.
        """
        async with self._renewing:
            return self.fresh() or await self._renew()

    async def renew(self, refused: Authorization) -> Authorization | None:
        """After a 401: another authorization to try once, or None when there is none (yet)."""
        async with self._renewing:
            if self._current is not refused:
                return self._current
            if self._is_static() or self._monotonic_s() < self._renewed_s + self._pause_s:
                return None
            renewed = await self._renew()
            return None if renewed is refused else renewed

    def _is_static(self) -> bool:
        access = self._access
        return not (access.token_file or access.exec_plugin or access.auth_provider)

    async def _renew(self) -> Authorization:
        self._renewed_s = self._monotonic_s()
        try:
            secret = await self._resolve()
        except CredentialsError as error:
            if self._current is None or self._has_expired():
                raise
            _log.warning("credentials could not be renewed, the old ones stay in use: %s", error)
            self._fresh_until_s = self._monotonic_s() + self._pause_s
            return self._current
        self._fresh_until_s = self._until_s(secret)
        if self._current is None or secret != self._secret:
            self._current = await self._authorize(secret)
            self._secret = secret
        return self._current

    async def _resolve(self) -> Resolved:
        access = self._access
        if access.exec_plugin is not None or access.auth_provider is not None:
            return await _run_plugin(access)
        if access.token_file:
            token = await asyncio.to_thread(_read, Path(access.token_file))
            return Resolved(token=token.decode("utf-8", "replace").strip())
        return Resolved(token=access.token)

    def _has_expired(self) -> bool:
        return self._secret.expires_s is not None and self._secret.expires_s <= self._wall_s()

    def _until_s(self, secret: Resolved) -> float:
        now_s = self._monotonic_s()
        if self._access.token_file:
            return now_s + _TOKEN_FILE_S
        if secret.expires_s is None:
            return float("inf")
        # Credentials that live shorter than the margin must not cause a plugin run per request.
        return now_s + max(self._pause_s, secret.expires_s - self._wall_s() - _EXPIRY_MARGIN_S)

    async def _authorize(self, secret: Resolved) -> Authorization:
        access = self._access
        headers = CIMultiDict(access.impersonate)
        if secret.token:
            headers["Authorization"] = f"Bearer {secret.token}"
        elif access.username:
            pair = f"{access.username}:{access.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        for name, value in headers.items():
            if not value.isprintable():
                # A line end in the value would start another header.
                raise CredentialsError(f"{access.origin}: {name}: must be one printable line")
        if not access.server.startswith("https:"):
            return Authorization(headers, None)
        previous = self._current
        if previous is not None and secret.certificate == self._secret.certificate:
            # Same certificate, same context: the pool's connections stay usable.
            return Authorization(headers, previous.tls)
        given = bool(secret.certificate)
        tls = await asyncio.to_thread(
            client_context,
            access.origin,
            ca_pem=access.ca_pem,
            insecure=access.insecure,
            certificate_pem=secret.certificate.encode() if given else access.certificate_pem,
            key_pem=secret.key.encode() if given else access.key_pem,
        )
        return Authorization(headers, tls)


async def _run_plugin(access: Access) -> Resolved:
    """Run `resolve_credentials` in a process of its own; killed when it takes too long or we are
    cancelled.
    """
    question = Unresolved(exec_plugin=access.exec_plugin, auth_provider=access.auth_provider)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "shared.kube.resolve_credentials",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_PLUGIN_TIMEOUT_S):
            out, err = await process.communicate(msgspec.json.encode(question))
    except TimeoutError:
        raise CredentialsError(
            f"{access.origin}: exec: no answer within {_PLUGIN_TIMEOUT_S:.0f} s; "
            "an interactive login is not possible here"
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise CredentialsError(f"{access.origin}: {err.decode('utf-8', 'replace').strip()[-2000:]}")
    try:
        return msgspec.json.decode(out, type=Resolved)
    except msgspec.MsgspecError as error:
        raise CredentialsError(f"{access.origin}: exec: unusable answer: {error}") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(f"{path}: cannot be read: {error.strerror}") from None


def client_context(
    origin: str,
    *,
    ca_pem: bytes | None,
    insecure: bool,
    certificate_pem: bytes | None,
    key_pem: bytes | None,
) -> ssl.SSLContext:
    """A context that trusts the given CA (or the system's) and shows the given client certificate.

    Blocks for milliseconds: it parses certificates and writes the key into a private file for as
    long as OpenSSL reads it (which takes files only).

    Raises:
        CredentialsError: Names `origin`, the field and what OpenSSL says.
    """
    try:
        ca_text = ca_pem.decode("ascii") if ca_pem is not None else None
        context = ssl.create_default_context(cadata=ca_text)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise CredentialsError(f"{origin}: certificate-authority: is no PEM: {error}") from None
    # Python 3.13 switches this on; cluster CAs of many installers lack the extensions that it asks
    # for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate_pem is not None and key_pem is not None:
        with tempfile.NamedTemporaryFile(prefix="tutti-", suffix=".pem") as file:
            file.write(certificate_pem + b"\n" + key_pem)
            file.flush()
            try:
                # The password keeps OpenSSL from asking for one at the terminal.
                context.load_cert_chain(file.name, password="")
            except (ssl.SSLError, ValueError) as error:
                raise CredentialsError(
                    f"{origin}: client-certificate, client-key: cannot be used: {error}"
                ) from None
    return context

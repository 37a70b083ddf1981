"""What logs users in: an OIDC provider (Dex), an API server that trusts it, and the part of an
ingress that authenticates (oauth2-proxy, alone or asked by nginx). All of them are on 127.0.0.1.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp

from tests.controlplane.certificates import Authority
from tests.controlplane.processes import Component, ComponentError, ReservedPort
from tests.support.waiting import eventually

NGINX: Final = "/usr/sbin/nginx"
PASSWORD: Final = "correct horse"
_HASH: Final = "$2b$10$Aj3j2EtrIUWqGGZneP0BcOJyeDgAfIbnERTaaTZ./fXUI3eE.MbK."
#: What the API server puts before names and groups of tokens.
PREFIX: Final = "oidc:"
#: The audience that the API server accepts, and one that it does not.
CLIENT: Final = "tutti-console"
OTHER_CLIENT: Final = "other"
#: Long enough for a login on a busy machine, and short enough to wait for its end.
TOKEN_S: Final = 40
_SECRET: Final = "a secret of both clients"
_HOST: Final = "127.0.0.1"
_START_S: Final = 60.0


class Account(NamedTuple):
    """A user of the provider."""

    email: str
    groups: tuple[str, ...] = ()


class Provider:
    """Dex, and the files with which others trust it."""

    def __init__(self, folder: Path) -> None:
        own, front = ReservedPort(), ReservedPort()
        self.folder = folder
        self.port = own.number
        #: The port at which users open the console.
        self.front = front.number
        own.release()
        front.release()
        self.issuer = f"https://{_HOST}:{self.port}/dex"
        authority = Authority("provider-ca")
        self.ca = folder / "provider-ca.crt"
        self.ca.write_bytes(authority.certificate_pem)
        pair = authority.server([_HOST])
        #: For everything that listens here.
        self.certificate, self.key = folder / "server.crt", folder / "server.key"
        self.certificate.write_bytes(pair.certificate_pem)
        self.key.write_bytes(pair.key_pem)

    def configuration(self, accounts: Sequence[Account], etcd: str) -> dict[str, Any]:
        """Dex's configuration."""
        clients = [
            {
                "id": client,
                "name": client,
                "secret": _SECRET,
                "redirectURIs": [f"{self.console_origin}/oauth2/callback"],
            }
            for client in (CLIENT, OTHER_CLIENT)
        ]
        return {
            "issuer": self.issuer,
            # With its storage in memory, it does not answer when a refresh token is used: the
            # refresh reads the storage while it changes it.
            "storage": {"type": "etcd", "config": {"endpoints": [etcd], "namespace": "dex/"}},
            "web": {
                "https": f"{_HOST}:{self.port}",
                "tlsCert": str(self.certificate),
                "tlsKey": str(self.key),
            },
            "expiry": {"idTokens": f"{TOKEN_S}s"},
            "oauth2": {
                "skipApprovalScreen": True,
                "passwordConnector": "local",
                "grantTypes": ["authorization_code", "refresh_token", "password"],
            },
            "staticClients": clients,
            "enablePasswordDB": True,
            "staticPasswords": [
                {
                    "email": one.email,
                    "emailVerified": True,
                    "username": one.email.partition("@")[0],
                    "userID": one.email,
                    "hash": _HASH,
                    "groups": list(one.groups),
                }
                for one in accounts
            ],
        }

    @property
    def console_origin(self) -> str:
        """Where users open the console."""
        return f"https://{_HOST}:{self.front}"

    def authentication(self) -> Path:
        """The file for the API server's flag `--authentication-config`."""
        document = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthenticationConfiguration",
            "jwt": [
                {
                    "issuer": {
                        "url": self.issuer,
                        "audiences": [CLIENT],
                        "certificateAuthority": self.ca.read_text(),
                    },
                    "claimMappings": {
                        "username": {"claim": "email", "prefix": PREFIX},
                        "groups": {"claim": "groups", "prefix": PREFIX},
                    },
                }
            ],
        }
        path = self.folder / "authentication.json"
        path.write_text(json.dumps(document))
        return path

    def context(self) -> ssl.SSLContext:
        """Trusts the provider, and all that has its certificate."""
        return ssl.create_default_context(cafile=str(self.ca))

    async def token(self, account: Account, client: str) -> str:
        """An id token of a user for a client, without a browser."""
        form = {
            "grant_type": "password",
            "username": account.email,
            "password": PASSWORD,
            "scope": "openid email groups",
            "client_id": client,
            "client_secret": _SECRET,
        }
        connector = aiohttp.TCPConnector(ssl=self.context())
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(f"{self.issuer}/token", data=form) as answer,
        ):
            found = await answer.json()
            return str(found["id_token"])

    @contextmanager
    def running(self, program: Path, accounts: Sequence[Account], etcd: str) -> Iterator[None]:
        """Run Dex with these users, and its storage in an etcd, for the length of the block; it may
        not answer yet at the beginning.
        """
        config = self.folder / "dex.json"
        config.write_text(json.dumps(self.configuration(accounts, etcd)))
        dex = Component("dex", [str(program), "serve", str(config)], self.folder / "dex.log")
        dex.start()
        try:
            yield
        finally:
            dex.stop()


@asynccontextmanager
async def oauth2_proxy(
    program: Path,
    provider: Provider,
    service: int,
    service_ca: Path,
    *more: str,
    client: str = CLIENT,
    port: int | None = None,
) -> AsyncIterator[None]:
    """oauth2-proxy in front of the API service's port, at the port that users open unless another
    one is given.

    Args:
        service_ca: What has signed the API service's certificate.
        more: Further flags.
    """
    port = provider.front if port is None else port
    flags = {
        "provider": "oidc",
        "oidc-issuer-url": provider.issuer,
        # They are those of the connections to the API service, too.
        "provider-ca-file": f"{provider.ca},{service_ca}",
        "client-id": client,
        "client-secret": _SECRET,
        "scope": "openid email groups offline_access",
        "code-challenge-method": "S256",
        # The default asks the user for consent at each login.
        "approval-prompt": "auto",
        "email-domain": "*",
        "redirect-url": f"{provider.console_origin}/oauth2/callback",
        "cookie-secret": "0123456789abcdef0123456789abcdef",
        "cookie-samesite": "lax",
        "upstream": f"https://{_HOST}:{service}/",
        # The token that the provider has signed, as `Authorization: Bearer`.
        "pass-authorization-header": "true",
        "skip-provider-button": "true",
        "http-address": "-",
        "https-address": f"{_HOST}:{port}",
        "tls-cert-file": str(provider.certificate),
        "tls-key-file": str(provider.key),
    }
    command = [str(program), *(f"--{name}={value}" for name, value in flags.items()), *more]
    async with _answering("oauth2-proxy", command, provider, port, "/ping"):
        yield


@asynccontextmanager
async def nginx(
    provider: Provider, proxy: int, service: int, service_ca: Path, folder: Path
) -> AsyncIterator[None]:
    """nginx in front of the API service at the port that users open: it asks oauth2-proxy, at
    another port, about each request, as an Ingress of ingress-nginx with `auth-url` and
    `auth-signin` makes it do.
    """
    config = folder / "nginx.conf"
    config.write_text(
        _NGINX.format(
            folder=folder,
            host=_HOST,
            front=provider.front,
            certificate=provider.certificate,
            key=provider.key,
            proxy=proxy,
            service=service,
            service_ca=service_ca,
        )
    )
    command = [NGINX, "-c", str(config), "-e", str(folder / "nginx-error.log")]
    async with _answering("nginx", command, provider, provider.front, "/oauth2/sign_in"):
        yield


_NGINX: Final = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  proxy_buffer_size 16k;
  proxy_buffers 4 16k;
  large_client_header_buffers 4 32k;
  server {{
    listen {host}:{front} ssl;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    location /oauth2/ {{
      proxy_pass https://{host}:{proxy};
      proxy_set_header Host $http_host;
    }}
    location = /_authentication {{
      internal;
      proxy_pass https://{host}:{proxy}/oauth2/auth;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header Host $http_host;
    }}
    location / {{
      auth_request /_authentication;
      auth_request_set $token $upstream_http_authorization;
      auth_request_set $cookie $upstream_http_set_cookie;
      add_header Set-Cookie $cookie;
      error_page 401 = @login;
      proxy_pass https://{host}:{service};
      proxy_ssl_trusted_certificate {service_ca};
      proxy_ssl_name tutti-api.kube-system.svc;
      proxy_ssl_verify on;
      proxy_set_header Authorization $token;
      proxy_http_version 1.1;
      proxy_buffering off;
    }}
    location @login {{
      return 302 /oauth2/start?rd=$request_uri;
    }}
  }}
}}
"""


@asynccontextmanager
async def _answering(
    name: str, command: Sequence[str], provider: Provider, port: int, path: str
) -> AsyncIterator[Component]:
    """A process that has a port, for the length of the block; at its begin it answers there."""
    running = Component(name, command, provider.folder / f"{name}-{port}.log")
    await asyncio.to_thread(running.start)
    try:
        await eventually(
            lambda: _answers(running, provider, f"https://{_HOST}:{port}{path}"),
            timeout_s=_START_S,
            because=f"{name} answers",
        )
        yield running
    finally:
        await asyncio.to_thread(running.stop)


async def _answers(running: Component, provider: Provider, url: str) -> bool:
    if not running.is_running:
        raise ComponentError(f"{running.name} ended:\n{running.log_tail()}")
    connector = aiohttp.TCPConnector(ssl=provider.context())
    try:
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(url, allow_redirects=False) as answer,
        ):
            return answer.status < 500
    except aiohttp.ClientError:
        return False


async def status_of(ca: Path, url: str, headers: Mapping[str, str]) -> int:
    """The status of the answer to a GET; `ca` has signed the server's certificate."""
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(ca)))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(url, headers=headers) as answer,
    ):
        return answer.status


async def log_in(page: Any, account: Account) -> None:
    """Fill in the provider's form, which is shown or will be."""
    await page.fill("#login", account.email)
    await page.fill("#password", PASSWORD)
    await page.click("#submit-login")

"""The console's files as HTTP answers."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from aiohttp import web

#: Path at which the console is served; its files are below.
ROOT_PATH: Final = "/console"
#: The only part of the API server that the console asks.
API_PATH: Final = "/apis/visibility.tutti.dev/v1alpha1"

_FOLDER: Final = Path(__file__).parent / "assets"
#: The files by what is behind `ROOT_PATH/`, with their types.
_TYPES: Final = {
    "index.html": "text/html",
    "app.js": "text/javascript",
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
    "licenses.txt": "text/plain",
}
#: Everything from our origin only; no scripts or styles in markup; and, by Trusted Types without a
#: policy, no markup from scripts: a value of a user cannot become either.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        # A browser asks each time, and is answered 304 until the next version of Tutti.
        "Cache-Control": "no-cache",
    }
)


def answer_file(path: str, if_none_match: str = "") -> web.Response | None:
    """The answer to a GET of a path; None: it is not a path of the console.

    Args:
        path: Path of the request, decoded.
        if_none_match: The request's header, as it is.
    """
    if path == ROOT_PATH:
        # Relative addresses in the page need the slash. This one is relative, too: a proxy may add
        # a prefix.
        location = f"{ROOT_PATH.rpartition('/')[2]}/"
        return web.Response(status=308, headers={**HEADERS, "Location": location})
    folder, _, name = path.rpartition("/")
    if folder != ROOT_PATH:
        return None
    name = name or "index.html"
    if name not in _TYPES:
        headers = {**HEADERS, "Content-Type": "text/plain"}
        return web.Response(status=404, headers=headers, body=b"not found")
    body, etag = _content(name)
    known = {given.strip().removeprefix("W/") for given in if_none_match.split(",")}
    headers = {**HEADERS, "ETag": etag}
    if etag in known:
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = f"{_TYPES[name]}; charset=utf-8"
    return web.Response(headers=headers, body=body)


@cache
def _content(name: str) -> tuple[bytes, str]:
    """A file and its ETag. Reads it once in a process: it is installed with the program."""
    body = (_FOLDER / name).read_bytes()
    return body, f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'

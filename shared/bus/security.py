"""Credentials and trusted CAs of a connection, from files that may be replaced while it is open.

Everything here reads files and so blocks: call it in a thread.
"""

import ssl
from pathlib import Path
from typing import Any


class Security:
    """Credentials and CA of one connection."""

    def __init__(self, credentials: str, tls_ca: str) -> None:
        """Take the paths of a credentials file or nkey seed, and of a CA; "" for none.

        Raises:
            OSError: A file cannot be read.
            ssl.SSLError: The CA is none.
            ValueError: The seed is no text.
        """
        self._tls_ca = tls_ca
        self._context: ssl.SSLContext | None = None
        #: When the trusted CA file was written.
        self._written_ns = 0
        if tls_ca:
            self._written_ns = _written_ns(tls_ca)
            self._context = ssl.create_default_context(cafile=tls_ca)
        #: The client library's options.
        self.options = self._options(credentials)

    @property
    def may_change(self) -> bool:
        """Whether there is a CA file, which may be replaced."""
        return self._context is not None

    def refresh(self) -> None:
        """Trust the CAs that the file has now, in addition to former ones; for the next connection.

        A file that is missing or incomplete is read again the next time.
        """
        if self._context is None:
            return
        try:
            written_ns = _written_ns(self._tls_ca)
            if written_ns != self._written_ns:
                self._context.load_verify_locations(cafile=self._tls_ca)
                self._written_ns = written_ns
        except OSError:  # ssl.SSLError is one
            return

    def _options(self, credentials: str) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self._context is not None:
            options["tls"] = self._context
        if credentials:
            content = Path(credentials).read_text("ascii")
            if "BEGIN NATS USER JWT" in content:
                options["user_credentials"] = credentials
            else:
                options["nkeys_seed_str"] = content.strip()
        return options


def _written_ns(path: str) -> int:
    return Path(path).stat().st_mtime_ns

"""The certificate that is served, and its replacement without a dropped connection.

A changed file never touches the context in use: a new one is built and tried, and only then handed
to new handshakes. (Loading a half-replaced pair into a living context would break it.) Connections
that exist continue with the certificate that they began with.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509

from services.admission_webhook.errors import CertificateProblem

log = logging.getLogger(__name__)

#: No event reports a changed file (a kubelet swaps a link); checking costs three stat calls.
LOOK_EVERY_S: Final = 2.0
#: How often our own certificate's age is looked at.
RENEW_EVERY_S: Final = 3600.0

_Seen = tuple[tuple[int, int, int], ...]


class CertificateFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Where the certificate chain, its key (which may be the same file) and its CA are."""

    certificate: Path
    key: Path
    ca: Path

    def seen(self) -> _Seen:
        """What changes when a file does. Blocks. Raises OSError."""
        stats = [path.stat() for path in (self.certificate, self.key, self.ca)]
        return tuple((stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in stats)


class ServingCertificate:
    """A TLS context for servers that serves whatever `reload` found last."""

    def __init__(self, files: CertificateFiles) -> None:
        """Load the files. Blocks. Raises CertificateProblem."""
        self._files = files
        self._current, self._ca, self._ends_s = _loaded(files)
        self._seen = _seen(files)
        self.context = self._current
        self.context.sni_callback = self._hand_over

    @property
    def ca(self) -> str:
        """The CA in PEM, for the API server to trust."""
        return self._ca

    @property
    def ends_s(self) -> float:
        """When what is served now ends to be valid, in seconds since the epoch."""
        return self._ends_s

    def reload(self) -> bool:
        """Load the files if they changed; returns whether. Blocks.

        Raises:
            CertificateProblem: They changed and cannot be used; what was served is served on. The
                next call looks again.
        """
        seen = _seen(self._files)
        if seen == self._seen:
            return False
        self._current, self._ca, self._ends_s = _loaded(self._files)
        # Seen before loading: what changes meanwhile is loaded by the next call.
        self._seen = seen
        return True

    async def watch(self, on_reload: Callable[[], None], *, every_s: float = LOOK_EVERY_S) -> None:
        """Look for changed files until cancelled; a problem with them is logged once."""
        told = ""
        while True:
            await asyncio.sleep(every_s)
            try:
                changed = await asyncio.to_thread(self.reload)
            except CertificateProblem as problem:
                if str(problem) != told:
                    told = str(problem)
                    log.warning("the old certificate is served on: %s", problem)
                continue
            told = ""
            if changed:
                log.info("certificate reloaded")
                on_reload()

    def _hand_over(
        self, handshake: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> None:
        """Called in every handshake, also without a server name."""
        handshake.context = self._current


def _seen(files: CertificateFiles) -> _Seen:
    try:
        return files.seen()
    except OSError as error:
        raise CertificateProblem(f"{error.filename}: {error.strerror}") from error


def _loaded(files: CertificateFiles) -> tuple[ssl.SSLContext, str, float]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a password an encrypted key would be asked for on the terminal.
        context.load_cert_chain(files.certificate, files.key, password="")
        ca = files.ca.read_text("ascii")
        ssl.create_default_context(cadata=ca)
        chain = x509.load_pem_x509_certificates(files.certificate.read_bytes())
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise CertificateProblem(f"{files.certificate}, {files.key}, {files.ca}: {error}") from None
    return context, ca, min(one.not_valid_after_utc for one in chain).timestamp()

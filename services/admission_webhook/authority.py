"""Our own CA and serving certificate, kept as files in one folder.

`ca.crt` and `ca.key` are valid for ten years. `serving.pem` (key and certificate in one file, so
that they are replaced in one step) is valid for one year and renewed a month before its end. These
functions block: call them in a thread.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509

from shared.runtime.certificate_authority import (
    Issued,
    Unreadable,
    is_good,
    issue,
    new_authority,
    read,
)
from shared.runtime.whole_files import write_whole

CA_LIFETIME: Final = timedelta(days=3650)
SERVING_LIFETIME: Final = timedelta(days=365)
RENEWED_BEFORE: Final = timedelta(days=30)

CA_FILE: Final = "ca.crt"
CA_KEY_FILE: Final = "ca.key"
SERVING_FILE: Final = "serving.pem"


def ensure(folder: Path, names: Sequence[str], now: datetime | None = None) -> bool:
    """Have a CA and a serving certificate for `names` in the folder.

    Valid files are kept, also across restarts, so that the API server does not get a new CA each
    time. Files that are missing or cannot be read are made again.

    Args:
        folder: Created when it is missing, readable by its owner only.
        names: DNS names and IP addresses of the certificate.
        now: The instant at which validity is checked; None: the current time.

    Returns:
        Whether a new serving certificate was made.

    Raises:
        OSError: The folder cannot be written.
    """
    at = now or datetime.now(UTC)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = _read_authority(folder, at)
    if authority is None:
        authority = new_authority("tutti-admission-ca", at, CA_LIFETIME)
        write_whole(folder / CA_KEY_FILE, authority.key_pem)
        write_whole(folder / CA_FILE, authority.certificate_pem)
    if _is_current(folder / SERVING_FILE, authority.certificate, names, at):
        return False
    made = issue(authority, "tutti-admission", names, at, SERVING_LIFETIME)
    write_whole(folder / SERVING_FILE, made.key_pem + made.certificate_pem)
    return True


def _read_authority(folder: Path, at: datetime) -> Issued | None:
    """The CA of the folder; None without one that is valid for longer than a new certificate."""
    try:
        found = read((folder / CA_FILE).read_bytes(), (folder / CA_KEY_FILE).read_bytes())
    except (FileNotFoundError, Unreadable):
        return None
    lasts = found.certificate.not_valid_after_utc > at + SERVING_LIFETIME
    return found if lasts else None


def _is_current(path: Path, issuer: x509.Certificate, names: Sequence[str], at: datetime) -> bool:
    """Whether the serving certificate is of this CA, for exactly these names, and not due for
    renewal.
    """
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    return is_good(certificate, issuer, names, at + RENEWED_BEFORE)

"""Our own CA and serving certificate, kept as files in one folder.

`ca.crt` and `ca.key` live for ten years, `serving.pem` (key and certificate in one file, so that it
is replaced in one step) for one and is renewed a month before its end. Everything here blocks: call
it in a thread.
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
    """See to it that the folder holds a CA and a serving certificate for `names`.

    What is there and still good is kept, also across restarts, so that the API server need not be
    given a new CA each time. What is there and cannot be read is made again.

    Args:
        folder: Made when it is missing, readable by its owner only.
        names: DNS names and IP addresses that the certificate is for.
        now: The instant to judge validity by.

    Returns:
        Whether the serving certificate was made again.

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
    if _lasts(folder / SERVING_FILE, authority.certificate, names, at):
        return False
    made = issue(authority, "tutti-admission", names, at, SERVING_LIFETIME)
    write_whole(folder / SERVING_FILE, made.key_pem + made.certificate_pem)
    return True


def _read_authority(folder: Path, at: datetime) -> Issued | None:
    """The CA of the folder; None when there is none that will outlive what it would sign."""
    try:
        found = read((folder / CA_FILE).read_bytes(), (folder / CA_KEY_FILE).read_bytes())
    except (FileNotFoundError, Unreadable):
        return None
    lasts = found.certificate.not_valid_after_utc > at + SERVING_LIFETIME
    return found if lasts else None


def _lasts(path: Path, issuer: x509.Certificate, names: Sequence[str], at: datetime) -> bool:
    """Whether the serving certificate is ours, for exactly these names, and not about to end."""
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    return is_good(certificate, issuer, names, at + RENEWED_BEFORE)

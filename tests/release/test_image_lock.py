"""requirements/image.lock names each Debian package of the image once for each architecture."""

from pathlib import Path

import pytest

from release.debian import NAMES, LockError, read_lock

_LOCK = (Path(__file__).parents[2] / "requirements" / "image.lock").read_text("utf-8")


def test_the_lock_has_every_package() -> None:
    packages = read_lock(_LOCK)
    assert {one.name for one in packages} == set(NAMES)
    by_version = {(one.name, one.version) for one in packages}
    # The Python of one architecture compiles the modules of the other.
    assert len([one for one in by_version if one[0] == "python3.11-minimal"]) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "each package once for each architecture: amd64 base-files"),
        (f"{_LOCK}{_LOCK}", "each package once for each architecture"),
        ("amd64 libc6 2.36\n", "line 1: expected `ARCHITECTURE NAME VERSION sha256:HASH`"),
        (_LOCK.replace("arm64 libc6 ", "arm64 libc7 "), "arm64 libc6, arm64 libc7"),
    ],
)
def test_an_incomplete_lock_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(LockError) as raised:
        read_lock(text)
    assert complaint in str(raised.value)

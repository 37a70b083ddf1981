"""`python -m release`: builds every artefact of a version from a commit (docs/releasing.md)."""

import argparse
import datetime as dt
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from release.build import Request, build
from release.changelog import ChangelogError
from release.charts import ChartError
from release.debian import LockError, new_lock
from release.image import ImageTooLargeError
from release.python_packages import BuildError
from release.sbom import InvalidBillError
from release.signing import SigningError, signer_from
from release.source import SourceError
from release.versions import set_version

_REPOSITORY = Path(__file__).parents[1]
_REFERENCE = re.compile(r"[a-z0-9.\-]+(:[0-9]+)?(/[a-z0-9._\-]+)*")
_EXPECTED = (
    *(BuildError, ChangelogError, ChartError, ImageTooLargeError, InvalidBillError),
    *(LockError, SigningError, SourceError),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    given = _parser().parse_args(arguments)
    try:
        if given.command == "build":
            _build(given)
        elif given.command == "version":
            today = dt.datetime.now(dt.UTC).date().isoformat()
            set_version(given.repository, given.version, given.date or today)
        else:
            path = given.repository / "requirements" / "image.lock"
            path.write_text(new_lock(), "utf-8")
    except _EXPECTED as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def _build(given: argparse.Namespace) -> None:
    signer = signer_from(os.environ)
    with tempfile.TemporaryDirectory(prefix="tutti-release-") as work:
        request = Request(
            repository=given.repository,
            version=given.version,
            output=given.output.resolve(),
            work=Path(work),
            cache=given.cache.resolve(),
            image=given.image,
            url=given.url.rstrip("/"),
            builder=given.builder,
        )
        print(build(request, signer), end="")


def _reference(text: str) -> str:
    if not _REFERENCE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected HOST/PATH without a tag")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--repository", type=Path, default=_REPOSITORY, metavar="FOLDER")
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("build", help="build all artefacts of the current commit")
    make.add_argument("--version", required=True, metavar="X.Y.Z")
    make.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    make.add_argument("--cache", type=Path, required=True, metavar="FOLDER")
    make.add_argument("--image", type=_reference, default="tutti", help="where it will be pushed")
    make.add_argument("--url", default="https://tutti.dev/releases", help="where files will be")
    make.add_argument("--builder", default="https://tutti.dev/docs/releasing.html#by-hand")
    version = commands.add_parser("version", help="make this the version of all files")
    version.add_argument("version", metavar="X.Y.Z")
    version.add_argument("--date", metavar="YYYY-MM-DD", help="of the changelog; default: today")
    commands.add_parser("lock-image", help="choose Debian packages again: requirements/image.lock")
    return parser


if __name__ == "__main__":
    sys.exit(main())

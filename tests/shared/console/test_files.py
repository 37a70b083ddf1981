import hashlib
import re
from pathlib import Path

import pytest

from shared.console.files import answer_file

ROOT = Path(__file__).parents[3]
ASSETS = ROOT / "shared" / "console" / "assets"


def test_the_bundle_was_built_from_the_present_sources() -> None:
    sources = ROOT / "console"
    names = [
        *(str(one.relative_to(sources)) for one in (sources / "src").rglob("*") if one.is_file()),
        "build.mjs",
        "package-lock.json",
    ]
    whole = hashlib.sha256()
    for name in sorted(names):
        content = hashlib.sha256((sources / name).read_bytes()).hexdigest()
        whole.update(f"{content}  {name}\n".encode())
    built = (ASSETS / "sources.sha256").read_text().strip()
    assert whole.hexdigest() == built, "run `make console` and commit shared/console/assets"


def test_the_page_loads_only_files_that_are_served() -> None:
    page = answer_file("/console/")
    assert page is not None
    assert page.status == 200
    assert isinstance(page.body, bytes)
    names = re.findall(r'(?:href|src)="([^"]*)"', page.body.decode())
    assert set(names) == {"icon.svg", "style.css", "app.js"}
    for name in names:
        found = answer_file(f"/console/{name}")
        assert found is not None
        assert found.status == 200, name


def test_a_file_that_a_browser_has_is_not_sent_again() -> None:
    first = answer_file("/console/app.js")
    assert first is not None
    for known in (first.headers["ETag"], f'"other", W/{first.headers["ETag"]}'):
        again = answer_file("/console/app.js", known)
        assert again is not None
        assert (again.status, again.body) == (304, None)
    other = answer_file("/console/app.js", '"other"')
    assert other is not None
    assert other.status == 200


def test_the_address_without_a_slash_leads_to_the_one_with_it() -> None:
    found = answer_file("/console")
    assert found is not None
    assert (found.status, found.headers["Location"]) == (308, "console/")


@pytest.mark.parametrize(
    "path",
    [
        "/console/none.js",
        "/console/files.py",
        "/console/sources.sha256",
        "/console/..",
        "/console/\0",
    ],
)
def test_no_other_file_is_served(path: str) -> None:
    found = answer_file(path)
    assert found is not None
    assert found.status == 404


@pytest.mark.parametrize(
    "path", ["/", "/consoles", "/console/../files.py", "/console/assets/app.js", "/apis/console"]
)
def test_other_paths_are_not_the_consoles(path: str) -> None:
    assert answer_file(path) is None


@pytest.mark.parametrize("path", ["/console", "/console/", "/console/app.js", "/console/none"])
def test_every_answer_forbids_foreign_and_inline_content(path: str) -> None:
    found = answer_file(path)
    assert found is not None
    policy = found.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    assert found.headers["X-Content-Type-Options"] == "nosniff"

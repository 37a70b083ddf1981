"""The site is built without a warning, and a broken link fails the build."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.documents.links import ROOT

pytestmark = [pytest.mark.certify, pytest.mark.timeout(600)]
SPHINX = ROOT / "build" / "docs-env" / "bin" / "python"


@pytest.fixture(scope="module")
def site() -> Path:
    """The site, built now; arguments of an outer `make` do not apply to it."""
    done = subprocess.run(["make", "docs", "ARGS="], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ROOT / "build" / "site"


def test_every_page_is_on_the_site(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 40
    assert [page for page in pages if not (site / page.with_suffix(".html")).is_file()] == []


def test_a_link_to_a_function_leads_to_the_line_that_defines_it(site: Path) -> None:
    tour = (site / "reading-the-code.html").read_text()
    found = re.search(r'href="(files/[^"#]*fence\.py\.html)#(FencedLog\.append_batch)"', tour)
    assert found is not None
    text = (site / found[1]).read_text()
    _, _, behind = text.partition(f'<a id="{found[2]}"')
    line = re.sub(r"<[^>]*>", "", behind.partition(">")[2].partition("\n")[0])
    assert "async def append_batch(" in line


def test_a_broken_link_fails_the_build(site: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs" / "theme", docs / "theme")
    shutil.copy(ROOT / "docs" / "conf.py", docs)
    (docs / "index.md").write_text("# A page\n\n[a](b.md), [c](#nowhere)\n")
    command = [str(SPHINX), "-m", "sphinx", "--fail-on-warning", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*command, str(docs), str(tmp_path / "site")], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "'b.md'" in done.stderr
    assert "nowhere" in done.stderr

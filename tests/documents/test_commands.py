"""A test runs every command of the documents: one here, or the test that the block names."""

from pathlib import Path

import pytest

from tests.controlplane.binaries import ensure_binaries
from tests.documents.blocks import Block, Command, all_blocks, pages
from tests.documents.links import ROOT
from tests.documents.playing import Session
from tests.documents.typed import objection, spans

BLOCKS = all_blocks()
#: Commands that run before a page that does not start Tutti itself.
SETUP = (
    Command("tutti cluster up &", "tutti: embedded cluster at …"),
    Command("export KUBECONFIG=$PWD/embedded.kubeconfig", ""),
    Command("tutti up &", "tutti: ready in …"),
)
HOW = "name the test that runs it in a mark above it: see tests/documents/blocks.py"


def cheap(block: Block) -> bool:
    return block.mark == "run" or block.what == "file"


def played(*, certify: bool) -> list[str]:
    """Pages with something to type."""
    wanted = [one for one in BLOCKS if one.what == "run" and (certify or cheap(one))]
    return sorted({one.page for one in wanted})


def test_every_command_of_the_documents_is_run_or_has_a_reason() -> None:
    known = {"run", "run by", "not run", "file"}
    unmarked = [one.title for one in BLOCKS if one.typed and one.what not in known]
    assert unmarked == [], HOW


def test_marks_are_complete() -> None:
    for one in BLOCKS:
        match one.what:
            case "run":
                assert one.detail in ("", "certify"), one.title
            case "run by":
                assert (ROOT / one.detail).exists(), f"{one.title}: there is no {one.detail}"
            case "not run":
                assert len(one.detail.split()) >= 4, f"{one.title}: why is it not run?"
            case _:
                pass


def test_commands_and_flags_of_a_page_exist() -> None:
    typed = [(one.title, each.typed) for one in BLOCKS if one.typed for each in one.commands()]
    missing = [f"{title}: {found}" for title, line in typed if (found := objection(line))]
    assert missing == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_within_sentences_exist(page: Path) -> None:
    missing = [f"`{one}`: {found}" for one in spans(page.read_text()) if (found := objection(one))]
    assert missing == []


@pytest.mark.parametrize(
    ("typed", "missing"),
    [
        ("tutti why job/x -n team", ""),
        ("tutti job list -o wide | grep x", ""),
        ("make test ARGS='-k name'  # chooses", ""),
        ("python -m tests.simulation --seeds 3", ""),
        ("vcctl job list -n team", ""),
        ("tutti replay FILE --scheduler-conf OTHER", ""),
        ("tutti job suspend|resume NAME", ""),
        ("tutti job suspend|rest NAME", "tutti job has no rest"),
        ("tutti whence", "tutti has no whence"),
        ("tutti job list --sorted", "tutti job list has no --sorted"),
        ("make tea", "make has no target tea"),
        ("cat a | python -m tests.nothing", "there is no module tests.nothing"),
    ],
)
def test_an_unknown_command_or_flag_is_named(typed: str, missing: str) -> None:
    assert objection(typed) == missing


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", played(certify=False))
def test_cheap_commands_of_a_page_have_its_output(page: str, tmp_path: Path) -> None:
    with Session(tmp_path, ensure_binaries().kubectl) as session:
        session.play([one for one in BLOCKS if one.page == page and cheap(one)])


@pytest.mark.certify
@pytest.mark.integration
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", played(certify=True))
def test_all_commands_of_a_page_have_its_output(page: str, tmp_path: Path) -> None:
    mine = [one for one in BLOCKS if one.page == page and one.what in ("run", "file")]
    with Session(tmp_path, ensure_binaries().kubectl) as session:
        if not any(each.typed.startswith("tutti up") for one in mine for each in one.commands()):
            for line in SETUP:
                session.type(line)
        session.play(mine)

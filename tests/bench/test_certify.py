"""A certificate says of every part how it ended, and of what was not run that it was not."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bench.certify.__main__ import CertifyRun, chosen_of, uncommitted
from bench.certify.inputs import digest_of
from bench.certify.page import certificate
from bench.certify.parts import ROOT, Extent, Part, parts_of, programs
from bench.certify.running import Ended, Ledger
from bench.session import Failure
from tests.bench.sessions import drain_case, drain_run, session

GOOD = Part("good", "platform", (), 1)
BAD = Part("bad", "timeit", ("-n", "1", "1/0"), 1)
LONG = Part("long", "timeit", ("-n", "1", "-r", "1", "import time; time.sleep(60)"), 0.01)


def ledger(folder: Path, commit: str = "c0") -> Ledger:
    """One whose parts depend on the commit alone."""
    return Ledger(folder, folder / "parts.jsonl", commit, lambda _: commit)


CHAOS = Ended(name="chaos", typed="python -m x", how="ok", status=0, minutes=3.4, summary="0 lost")


@pytest.mark.parametrize(("part", "how"), [(GOOD, "ok"), (BAD, "failed"), (LONG, "took too long")])
def test_a_part_ends_well_or_fails_or_takes_too_long(tmp_path: Path, part: Part, how: str) -> None:
    found = ledger(tmp_path).run(part)
    assert found.how == how
    assert (found.status == 0) == (how == "ok")
    assert found.summary
    assert (tmp_path / f"{part.name}-c0.log").is_file()


def test_what_has_ended_is_remembered_unless_it_would_be_run_otherwise(tmp_path: Path) -> None:
    ran = ledger(tmp_path).run(GOOD)
    assert ledger(tmp_path).find(GOOD) == ran
    assert ledger(tmp_path).find(GOOD._replace(arguments=("--aliased",))) is None
    assert ledger(tmp_path).find(BAD) is None


def test_what_has_ended_elsewhere_is_read_from_the_committed_file(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    good, bad = (ledger(there).run(part) for part in (GOOD, BAD))
    ledger(there).commit_to([good])
    ledger(there).commit_to([bad])
    here.mkdir()
    (there / "parts.jsonl").rename(here / "parts.jsonl")
    assert ledger(here).find(GOOD) == good
    assert ledger(here).find(BAD) == bad
    assert ledger(here, "c1").find(GOOD) is None, "it depends on what was changed"
    assert ledger(here, "c1").minutes_before(GOOD) == good.minutes
    again = replace(good, commit="c1", digest="c1")
    ledger(here, "c1").commit_to([again])
    assert ledger(here, "c1").find(GOOD) == again
    assert ledger(here, "c1").find(BAD) is None


def test_failed_tests_are_named(tmp_path: Path) -> None:
    tried = tmp_path / "test_it.py"
    tried.write_text("def test_it_holds() -> None:\n    assert not __name__\n")
    part = Part("tests", "pytest", ("-q", "-p", "no:cacheprovider", str(tried)), 1)
    found = ledger(tmp_path).run(part)
    assert found.how == "failed"
    assert [name.rpartition("::")[2] for name in found.failed] == ["test_it_holds"]
    assert found.summary.startswith("1 failed")


def test_tests_that_did_not_run_are_named_with_their_reason(tmp_path: Path) -> None:
    tried = tmp_path / "test_it.py"
    tried.write_text("import pytest\n\ndef test_it() -> None:\n    pytest.skip('no root here')\n")
    part = Part("tests", "pytest", ("-q", "-rs", "-p", "no:cacheprovider", str(tried)), 1)
    found = ledger(tmp_path).run(part)
    (skipped,) = found.skipped
    assert skipped.endswith("no root here")
    page = certificate([found], [], None, title="Issue 4", commit="c0")
    assert "not run: " in page
    assert "no root here |" in page


def test_what_measures_runs_alone_after_the_rest_and_what_failed_hides_nothing(
    tmp_path: Path,
) -> None:
    measuring = GOOD._replace(name="measuring", alone=True)
    run = CertifyRun(ledger(tmp_path), again=False, hours=1)
    counts = [len(run.ended) for _ in run.all([measuring, BAD, GOOD], together=2)]
    assert counts[-1] == len(run.ended) == 3
    assert list(run.ended)[-1] == "measuring"
    assert run.ended["bad"].how == "failed"


def test_what_took_longest_the_last_time_begins_first_and_what_never_ran_before_it(
    tmp_path: Path,
) -> None:
    short, long, new = (GOOD._replace(name=name) for name in ("short", "long", "new"))
    for part, minutes in ((short, 1.0), (long, 9.0)):
        kept = replace(CHAOS, name=part.name, minutes=minutes)
        (tmp_path / f"{part.name}-c0.json").write_bytes(msgspec.json.encode(kept))
    run = CertifyRun(ledger(tmp_path, "c1"), again=False, hours=1)
    list(run.all([short, long, new], together=1))
    assert list(run.ended) == ["new", "long", "short"]


def test_what_does_not_begin_in_time_is_not_run(tmp_path: Path) -> None:
    run = CertifyRun(ledger(tmp_path), again=False, hours=-1)
    list(run.all([GOOD, BAD._replace(alone=True)], together=2))
    assert run.ended == {}


def test_what_ended_before_is_on_the_page_also_when_the_hours_are_over(tmp_path: Path) -> None:
    earlier = CertifyRun(ledger(tmp_path), again=False, hours=1)
    list(earlier.all([GOOD], together=1))
    run = CertifyRun(ledger(tmp_path), again=False, hours=-1)
    list(run.all([GOOD, BAD], together=1))
    assert run.ended == earlier.ended


def test_every_file_of_long_tests_is_a_part() -> None:
    listed = "tests/a/test_x.py::test_1\ntests/a/test_x.py::test_2[a::b]\ntests/b/test_y.py::t\n\n3"
    assert [part.name for part in parts_of(listed)] == ["tests/a/test_x.py", "tests/b/test_y.py"]
    busy = "tests/services/gang_planner/test_busy_machine.py"
    assert (ROOT / busy).is_file()
    assert [part.alone for part in parts_of(f"{listed}\n{busy}::test_p99")] == [False, False, True]


def test_parts_have_names_of_their_own_and_what_lasts_lasts_as_asked(tmp_path: Path) -> None:
    found = programs(Extent(minutes=12), tmp_path)
    assert len({part.name for part in found}) == len(found)
    typed = {part.name: part.typed for part in found}
    assert typed["soak"] == "python -m bench.soak --minutes 12"
    assert typed["chaos"] == "python -m tests.chaos --minutes 2"


def test_a_certificate_names_what_failed_was_missed_and_was_not_run() -> None:
    found = session(drains=[drain_case(drain_run(rate=600))], lives=[])
    found.failures.append(Failure(contender="tutti", what="live", why="0 of 1600 pods are bound"))
    soak = replace(CHAOS, name="soak", how="failed", status=1, failed=("t::a",))
    page = certificate(
        [CHAOS, soak], ["fuzz"], found, title="Issue 4, 2026-01-02", commit="0123456789ab"
    )
    assert page.startswith("# Issue 4, 2026-01-02\n")
    assert "commit: `0123456789ab`" in page
    assert "bars missed by them: drain 20 x 500, rate / bind limit\n" in page
    assert (
        "not run: fuzz; tutti's live (0 of 1600 pods are bound); "
        "other schedulers (no binary was given)" in page
    )
    assert "| chaos | ok | 3 | 0 lost |" in page
    assert "| soak | **failed** (1) | 3 | 0 lost; failed: t::a |" in page
    assert "| drain 20 x 500 | rate / bind limit | 0.60 | ≥ 0.70 | 1 | MISSED |" in page


def test_a_certificate_without_drains_says_so() -> None:
    page = certificate([CHAOS], ["drains"], None, title="Issue 4", commit="0")
    assert "* not run: drains\n" in page
    assert "the drains have no figures" in page


NAMES = (
    "tests/d/test_d.py",
    "tests/e/test_e.py",
    "tests/rights/test_f.py",
    "tests/documents/test_g.py",
    "tests/bench/test_h.py",
    "tests/simulation/test_simulation.py",
    "tests/simulation/test_jobs.py",
    "simulation",
    "soak",
    "drains",
)
TREE = """\
100644 blob aaa\tservices/a.py
100644 blob bbb\tdocs/b.md
100644 blob ccc\ttests/support/c.py
100644 blob ddd\ttests/d/test_d.py
100644 blob dd1\ttests/integration/test_d.py
100644 blob dd2\ttests/rights/guarded_up.py
100644 blob eee\tbench/certify/e.py
100644 blob ee1\tbench/suite_eyes.py
100644 blob ee2\tbench/drain.py
100644 blob ee3\tbench/planner/world.py
100644 blob ee4\ttests/simulation/volumes.py
"""


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ("aaa", {*NAMES}),
        ("bbb", {"tests/documents/test_g.py"}),
        ("ccc", {*NAMES}),
        ("ddd", {"tests/d/test_d.py"}),
        ("dd1", {"tests/rights/test_f.py"}),
        ("dd2", {"tests/rights/test_f.py"}),
        ("eee", set[str]()),
        ("ee1", {"tests/bench/test_h.py", "soak"}),
        ("ee2", {"tests/bench/test_h.py", "drains"}),
        ("ee3", {"tests/bench/test_h.py"}),
        (
            "ee4",
            {
                "tests/simulation/test_simulation.py",
                "tests/simulation/test_jobs.py",
                "simulation",
            },
        ),
    ],
    ids=[
        "code",
        "a document",
        "what tests share",
        "a file of tests",
        "one that another part runs",
        "what only the tests of rights share",
        "how parts are reported",
        "what the soak imports",
        "what the drains import",
        "what another benchmark imports",
        "what the simulation imports",
    ],
)
def test_after_a_change_runs_again_what_depends_on_it(changed: str, again: set[str]) -> None:
    modules = {"soak": "bench.soak", "drains": "bench", "simulation": "tests.simulation"}
    parts = [GOOD._replace(name=name, module=modules.get(name, "pytest")) for name in NAMES]
    changed_tree = TREE.replace(changed, "fff")
    found = {one.name for one in parts if digest_of(one, TREE) != digest_of(one, changed_tree)}
    assert found == again
    assert digest_of(None, TREE) == digest_of(parts[-1], TREE)


def test_what_ran_at_another_commit_on_the_same_code_is_kept_and_named() -> None:
    page = certificate([replace(CHAOS, commit="c0")], [], None, title="Issue 4", commit="c1")
    assert "| chaos | ok | 3 | 0 lost; at c0, what it depends on is the same |" in page


def test_uncommitted_code_is_named_and_uncommitted_documents_are_not() -> None:
    status = " M services/a.py\n M docs/b.md\nM  README.md\n"
    assert uncommitted(status) == ["services/a.py"]


def test_a_word_chooses_the_part_of_that_name_or_all_that_have_it() -> None:
    parts = [
        Part(name, "module", (), 1.0) for name in ("tests/test_recovery.py", "recovery", "soak")
    ]
    assert [part.name for part in chosen_of(parts, ["recovery"])] == ["recovery"]
    assert [part.name for part in chosen_of(parts, ["recover"])] == [
        "tests/test_recovery.py",
        "recovery",
    ]
    assert chosen_of(parts, []) == parts


def test_the_share_of_mutants_that_die_is_a_part() -> None:
    (part,) = [one for one in programs(Extent(), ROOT / "x.json") if one.name == "mutation"]
    assert part.typed == "python -m tests.mutation"
    assert not part.alone

import msgspec

from services.controller.core.statuses.annotation import ANNOTATION_BYTES_MAX, annotation_of
from shared.contracts.verdicts import PodRef, Reason, ShapeReport, Verdict, Why
from tests.services.controller.core.samples import make_verdict, make_waiting


def read(verdict: Verdict) -> Verdict:
    return msgspec.json.decode(annotation_of(verdict), type=Verdict)


def test_an_equal_meaning_is_an_equal_text() -> None:
    one = make_waiting(epoch=1, at_ms=5)
    other = make_waiting(epoch=2, at_ms=6, waiting=())
    assert annotation_of(one) == annotation_of(other)


def test_it_reads_back_as_the_verdict_without_lists_of_pods() -> None:
    verdict = make_waiting(placed=(PodRef(uid="u-3", name="w-3"),))
    found = read(verdict)
    assert (found.phase, found.why, found.conditions) == (
        verdict.phase,
        verdict.why,
        verdict.conditions,
    )
    assert (found.waiting, found.placed) == ((), ())


def test_gangs_of_other_namespaces_are_a_count_only() -> None:
    why = Why(
        reason="R",
        sentence="s",
        ahead=("team/mine", "secret/theirs", "team-secret/theirs"),
        ahead_count=3,
        holders=("secret/older", "team/old"),
        holders_count=9,
    )
    text = annotation_of(make_verdict(why=why))
    assert "secret" not in text
    found = read(make_verdict(why=why)).why
    assert found is not None
    assert (found.ahead, found.ahead_count) == (("team/mine",), 3)
    assert (found.holders, found.holders_count) == (("team/old",), 9)


def test_it_stays_small_whatever_the_verdict_holds() -> None:
    reasons = tuple(Reason(reason="r" * 5_000, count=1) for _ in range(1_000))
    shapes = tuple(ShapeReport(role=f"r{index}", reasons=reasons) for index in range(200))
    why = Why(reason="R", sentence="s" * 100_000, shapes=shapes, quota=reasons)
    # An object's annotations may have 256 KiB in all.
    assert len(annotation_of(make_verdict(why=why))) < 32 * 1024


def test_it_is_bounded_in_bytes_for_texts_that_json_escapes() -> None:
    shape = ShapeReport(
        role="\x01" * 253, reasons=(Reason(reason="\x02" * 5_000, count=1),) * 50, wanted=1
    )
    why = Why(reason="R", sentence="\N{SNOWMAN}" * 5_000, shapes=(shape,) * 40)
    text = annotation_of(make_verdict(why=why))
    assert len(text.encode()) <= ANNOTATION_BYTES_MAX
    found = read(make_verdict(why=why)).why
    assert found is not None
    assert found.shapes_count == 40

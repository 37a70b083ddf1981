"""Every message has a bound of its bytes, which a test shows with the largest legal objects.

The kinds are found, so that a new one has to be listed here with its test.
"""

import ast
import pathlib
from typing import Final, get_args

import msgspec
import pytest

from services.gang_planner.core.lifecycle.use_accounting import PER_RECORD_MAX
from services.gang_planner.core.queries.fragmentation import SHAPES_MAX
from shared.contracts import cluster, codec, decisions, observing, outcomes, questions, verdicts
from shared.contracts.subjects import MESSAGE_BYTES_MAX

ROOT: Final = pathlib.Path(__file__).parents[3]
MODULES: Final = (cluster, decisions, observing, outcomes, questions, verdicts)
LIMIT: Final = MESSAGE_BYTES_MAX - 1024
_PLANNER: Final = "tests/services/gang_planner/core/test_largest_messages.py"
_CHANGES: Final = (
    "tests/services/watcher/core/test_changes.py"
    "::test_a_large_record_is_cut_into_parts_that_hold_it_all"
)
_HERE: Final = "tests/shared/contracts/test_bounds.py"
#: An answer or a question that is too large is not sent: its requester alone goes without.
_NOT_SENT: Final = (
    "tests/shared/bus/test_questions.py"
    "::test_an_answer_that_is_too_large_is_not_sent_and_the_next_one_is"
)
#: Kind -> the test that makes its largest message of the largest objects.
TESTS: Final[dict[type[msgspec.Struct], str]] = {
    verdicts.Verdict: (
        f"{_PLANNER}::test_the_lists_of_a_verdict_fit_together_with_everything_else"
    ),
    decisions.GangDecision: (
        f"{_PLANNER}::test_a_quorum_is_too_large_if_its_longest_members_do_not_fit"
    ),
    decisions.EvictionDecision: f"{_PLANNER}::test_victims_are_split_by_their_bytes",
    decisions.NoteOpened: (
        f"{_PLANNER}::test_lost_members_by_the_thousand_are_replaced_in_decisions_that_fit"
    ),
    decisions.NoteClosed: (
        f"{_PLANNER}::test_lost_members_by_the_thousand_are_replaced_in_decisions_that_fit"
    ),
    decisions.UseCharged: f"{_HERE}::test_the_largest_record_of_past_use_fits",
    decisions.Checkpoint: (
        f"{_PLANNER}::test_the_state_of_one_gang_larger_than_a_page_is_written_on_several"
    ),
    outcomes.Outcome: (
        "tests/services/binder/core/test_outcome.py"
        "::test_the_outcome_of_as_many_short_names_as_a_decision_holds_fits_with_texts"
    ),
    observing.Observation: f"{_HERE}::test_a_page_of_observations_fits",
    questions.FitAnswer: f"{_HERE}::test_the_longest_answer_about_a_fit_fits",
    questions.FragmentationAnswer: f"{_HERE}::test_the_longest_answer_about_shapes_fits",
    questions.EstimatesAnswer: f"{_HERE}::test_the_longest_page_of_estimates_fits",
    questions.SuggestionsAnswer: f"{_HERE}::test_the_longest_suggestions_fit",
    questions.LedgerAnswer: _NOT_SENT,
    questions.ServiceStatus: _NOT_SENT,
    questions.FitRequest: (
        "tests/shared/bus/test_connection.py"
        "::test_a_payload_beyond_the_limit_never_reaches_the_server"
    ),
    cluster.SnapshotPage: (
        "tests/services/watcher/core/test_snapshots.py"
        "::test_the_pages_hold_the_whole_snapshot_and_none_is_too_large"
    ),
    **{
        kind: _CHANGES
        for name, kind in vars(cluster).items()
        if isinstance(kind, type) and name.endswith("Changes")
    },
}


_LISTS: Final = (
    msgspec.inspect.CollectionType,
    msgspec.inspect.DictType,
    msgspec.inspect.VarTupleType,
)
#: Their lists are of our own making: the names of kinds and dialects.
OWN: Final = {cluster.Synced, cluster.SnapshotRequest}


def _kinds() -> list[type[msgspec.Struct]]:
    return [
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, msgspec.Struct)
        and value.__module__ == module.__name__
        and value.__struct_config__.tag is not None
    ]


def _has_list(kind: type[msgspec.Struct]) -> bool:
    """Whether a message of this kind may have any number of entries."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    pending = [field.type for field in info.fields]
    while pending:
        one = pending.pop()
        if isinstance(one, msgspec.inspect.UnionType):
            pending += one.types
        elif isinstance(one, msgspec.inspect.StructType):
            pending += [field.type for field in one.fields]
        elif isinstance(one, _LISTS):
            return True
    return False


@pytest.mark.parametrize("kind", _kinds(), ids=lambda kind: kind.__name__)
def test_every_kind_with_lists_has_a_test_of_its_largest_message(
    kind: type[msgspec.Struct],
) -> None:
    test = TESTS.get(kind)
    if test is None:
        assert not _has_list(kind) or kind in OWN, "list its test in this file"
        return
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    names = [
        one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert name in names


def test_the_largest_record_of_past_use_fits() -> None:
    name, large = "n" * 253, 2**62
    use = decisions.AccountUse(
        queue=name, user=f"namespace {name}", at_ms=large, past=large, held=large, used=True
    )
    record = decisions.UseCharged(
        epoch=large,
        at_ms=large,
        accounts=(use,) * PER_RECORD_MAX,
        forgotten=((name, f"namespace {name}"),) * PER_RECORD_MAX,
    )
    assert len(codec.encode(record)) < LIMIT


def test_a_page_of_observations_fits() -> None:
    row = observing.GangObserved(
        gang=f"{'s' * 63}/{'g' * 1_012}",
        scope="s" * 253,
        scheduler_name="s" * 253,
        failure="f" * observing.TEXT_BYTES_MAX,
        release="r" * observing.TEXT_BYTES_MAX,
        seen_ms=2**62,
        complete_ms=2**62,
        decided_ms=2**62,
        first_bound_ms=2**62,
        whole_ms=2**62,
        ended_ms=2**62,
    )
    page = observing.Observation(since_ms=0, at_ms=0, gangs=(row,) * observing.PAGE_GANGS)
    assert len(codec.encode(page)) <= LIMIT


def test_the_longest_answer_about_a_fit_fits() -> None:
    answer = questions.FitAnswer(
        fits=False,
        ever=True,
        sentence="s" * 4_096,
        where=(("n" * 253, 2**31),) * 100,
        displaces=((f"{'s' * 63}/{'g' * 253}", 2**31),) * 1_000,
    )
    assert len(codec.encode(answer)) <= LIMIT


def test_the_longest_answer_about_shapes_fits() -> None:
    tier = questions.TierCapacity(tier="t" * 1_024, domain="d" * 253, pods=2**31)
    shape = questions.ShapeCapacity(
        id="0" * 12,
        requests=((f"{'d' * 253}/{'r' * 63}", 2**62),) * 32,
        node_selector=((f"{'d' * 253}/{'k' * 63}", "v" * 63),) * 32,
        members=2**31,
        waiting=2**31,
        total=2**31,
        unfragmented=2**31,
        node="n" * 253,
        tiers=(tier,) * 8,
    )
    answer = questions.FragmentationAnswer(shapes=(shape,) * SHAPES_MAX)
    assert len(codec.encode(answer)) <= LIMIT


def test_the_longest_page_of_estimates_fits() -> None:
    estimate = questions.StartEstimate(
        gang_id="g" * 253,
        position=2**31,
        earliest_ms=2**62,
        latest_ms=2**62,
        basis="b" * questions.ESTIMATE_BASIS_MAX,
    )
    answer = questions.EstimatesAnswer(
        as_of_ms=2**62, estimates=(estimate,) * questions.ESTIMATES_PAGE, more=True
    )
    assert len(codec.encode(answer)) <= LIMIT


def test_the_longest_suggestions_fit() -> None:
    """One of each kind; the longest names a taint, a node and a dozen resources."""
    suggestion = questions.Suggestion(kind="nodes", change="c" * 10_000)
    kinds = get_args(questions.SuggestionKind)
    answer = questions.SuggestionsAnswer(suggestions=(suggestion,) * len(kinds), sentence="s" * 500)
    assert len(codec.encode(answer)) <= LIMIT

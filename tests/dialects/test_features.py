"""Every feature of every API has cases, or a reason why it has none."""

import msgspec

from tests.dialects.cases import FOLDER
from tests.dialects.features import Features, Gap, objections, read_cases, read_features

FEATURES = read_features()
CASES = read_cases(FEATURES)
#: Folders of other things.
NO_DIALECTS = {"crds", "__pycache__"}


def test_each_feature_of_each_dialect_is_proved_or_has_a_reason() -> None:
    assert objections(FEATURES, CASES) == []


def test_each_folder_is_a_column() -> None:
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir()} - NO_DIALECTS
    assert folders == set(FEATURES.dialects)


def test_no_two_cases_have_one_name() -> None:
    names = [case.name for case in CASES]
    assert sorted(names) == sorted(set(names))


def test_each_case_is_played_on_a_cluster() -> None:
    assert [case.name for case in CASES if len(case.not_on) > 1] == []


def test_a_feature_without_case_and_reason_is_noticed() -> None:
    without = [case for case in CASES if case.feature != "lost"]
    assert "kueue: lost: neither a case nor a reason" in objections(FEATURES, without)


def test_a_case_of_a_feature_that_is_said_to_be_missing_is_noticed() -> None:
    gaps = {"kueue": {"lost": Gap(answer="no", why="it is not")}}
    found = objections(msgspec.structs.replace(FEATURES, gaps=gaps), CASES)
    assert "kueue: lost: a case, and the answer 'no'" in found


def test_a_case_and_a_reason_of_unknown_features_are_noticed() -> None:
    few = Features(
        dialects=FEATURES.dialects,
        features={"whole": "w"},
        gaps={"kueue": {"size": Gap(answer="no", why="-")}, "moon": {}},
    )
    found = objections(few, CASES)
    assert any("there is no feature 'lost'" in one for one in found)
    assert "gaps: kueue: there is no feature 'size'" in found
    assert "gaps: there is no dialect 'moon'" in found


def test_pods_that_a_controller_makes_are_named_where_none_is_bound() -> None:
    """Otherwise a step would be as expected before the pods exist."""
    controllers = {"Job", "StatefulSet"}
    vague = [
        case.name
        for case in CASES
        if any(one.kind in controllers for step in case.steps for one in step.create)
        for step in case.steps
        if step.expect.bound in ((), 0) and not step.expect.pods and not step.expect.events
    ]
    assert vague == []

"""A gang has the name that its user knows, wherever it is shown."""

import pytest

from shared.model.gang_keys import gang_title

UID = "a843473f-2a42-4665-8d18-7da12094861f"


@pytest.mark.parametrize(
    ("name", "owner", "title"),
    [
        pytest.param(f"second-{UID}", "job/second", "job/second", id="a Volcano Job"),
        pytest.param(f"second-{UID}", "", "second", id="a Job that is gone"),
        pytest.param(f"a-{UID}-b", "", "a (b)", id="a part of an owner that is gone"),
        pytest.param(f"podgroup-{UID}", "jobset/train", "jobset/train", id="made for an owner"),
        pytest.param(f"podgroup-{UID}", "", f"podgroup-{UID}", id="of an unknown owner"),
        pytest.param(
            f"podgroup-{UID}-0",
            "leaderworkerset/serve",
            "leaderworkerset/serve (0)",
            id="one of an owner's gangs",
        ),
        pytest.param("train", "", "train", id="a group of a user"),
        pytest.param("train", "tfjob/train", "tfjob/train", id="a group named as its owner"),
        pytest.param("serve-1", "podcliqueset/serve", "podcliqueset/serve (serve-1)", id="many"),
        pytest.param(f"second-{UID}:{UID}", "job/second", "job/second", id="of two APIs"),
        pytest.param("a-1234", "", "a-1234", id="no UID"),
    ],
)
def test_a_gang_is_named_as_its_user_knows_it(name: str, owner: str, title: str) -> None:
    assert gang_title(name, owner) == title

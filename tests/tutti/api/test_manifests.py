from pathlib import Path

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from shared.kube.resources import JOBS_VOLCANO
from tutti.api.failures import Refusal
from tutti.api.manifests import contents, read, warnings_of


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param(['299 - "would fit now"', '299 k8s "b"'], ["would fit now", "b"], id="two"),
        pytest.param(['299 - "say \\"a\\\\b\\""'], ['say "a\\b"'], id="escapes"),
        pytest.param(['299 - "x" "Wed, 21 Oct 2026 07:28:00 GMT"'], ["x"], id="date"),
        pytest.param(["199 - nonsense"], [], id="another kind"),
    ],
)
def test_warnings_are_read_from_every_header_of_that_name(
    headers: list[str], expected: list[str]
) -> None:
    given = CIMultiDict([("Warning", each) for each in headers])
    assert warnings_of(CIMultiDictProxy(given)) == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param("a: [", "not YAML", id="no yaml"),
        pytest.param("---\n", "there is no Job in it", id="empty"),
        pytest.param("- a\n", "no kind of no apiVersion; expected Job", id="a list"),
    ],
)
def test_a_file_without_manifests_is_refused_by_its_name(
    tmp_path: Path, content: str, words: str
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(content)
    with pytest.raises(Refusal, match=words) as refused:
        read(contents(str(path)), JOBS_VOLCANO)
    assert str(path) in str(refused.value)


def test_the_manifests_of_a_folder_are_read_by_name_and_nothing_else_in_it(tmp_path: Path) -> None:
    for name in ("b.yml", "a.yaml", "c.json", "notes.txt"):
        (tmp_path / name).write_text(f'{{"from": "{name}"}}')
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "d.yaml").write_text("from: d.yaml")
    found = [document for file in contents(str(tmp_path)) for document in file.documents()]
    assert found == [{"from": "a.yaml"}, {"from": "b.yml"}, {"from": "c.json"}]
    (tmp_path / "empty").mkdir()
    with pytest.raises(Refusal, match=r"there is no .yaml, .yml or .json file in this folder"):
        contents(str(tmp_path / "empty"))
    with pytest.raises(Refusal, match="cannot be read: No such file or directory"):
        contents(str(tmp_path / "none"))

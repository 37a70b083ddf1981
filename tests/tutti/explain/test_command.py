"""`tutti explain-dialect`: text, JSON and exit statuses."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tutti.explain_command import explain_dialect

PAIR = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: pair}
spec: {minMember: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: pair-0, annotations: {scheduling.k8s.io/group-name: pair}}
spec: {schedulerName: SCHEDULER, containers: [{name: main}]}
"""


def ran(text: str, *flags: str) -> Result:
    return CliRunner().invoke(explain_dialect, ["-f", "-", *flags], input=text)


def test_it_prints_each_object_and_each_gang() -> None:
    done = ran(PAIR.replace("SCHEDULER", "tutti"), "-n", "team")
    assert done.exit_code == 0
    assert done.stdout == (
        "-, document 1: PodGroup team/pair\n"
        "  gang       team/pair\n"
        "  read       a group object of the dialect volcano\n"
        "-, document 2: Pod team/pair-0\n"
        "  gang       team/pair\n"
        "  declares   annotation scheduling.k8s.io/group-name: pair (dialect group_name): "
        "this is its gang\n"
        "  scheduler  tutti: Tutti serves this name\n"
        "\n"
        "gang team/pair: Tutti schedules it\n"
        "  declared by  a group object of the dialect volcano\n"
        "  members      1 among these objects, minimum 1\n"
        "  queue        default\n"
    ).replace("-, document", "<stdin>, document")


def test_it_prints_json_and_fails_when_something_is_missing() -> None:
    done = ran(PAIR.replace("SCHEDULER", "default-scheduler"), "-o", "json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["gangs"][0]["scheduled"] is False
    assert found["objects"][1]["scheduling"][0]["scheduler"] == "default-scheduler"
    served = ("--scheduler-name", "default-scheduler")
    assert ran(PAIR.replace("SCHEDULER", "default-scheduler"), *served).exit_code == 0


@pytest.mark.parametrize("text", ["{", "- a\n- b", "5", "", "---\n# nothing"])
def test_what_is_no_manifest_is_refused_with_its_place(text: str) -> None:
    done = ran(text)
    assert done.exit_code == 2
    assert done.stderr.startswith("tutti: ")


def test_the_example_of_the_documentation_is_current(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "submitting.md"
    shown = page.read_text().partition("$ tutti explain-dialect -f pair.yaml\n")[2]
    text = page.read_text().partition("<!-- file: pair.yaml -->\n```yaml\n")[2].partition("```")[0]
    (tmp_path / "pair.yaml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        done = CliRunner().invoke(explain_dialect, ["-f", "pair.yaml"])
    assert done.stdout == shown.partition("```")[0]

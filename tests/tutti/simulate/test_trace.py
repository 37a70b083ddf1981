"""Every invalid trace is refused with its place and the rule; nothing else ends a reader."""

import gzip
from pathlib import Path

import pytest

from tutti.simulate.trace import InvalidTrace, Trace, TraceOptions, read_trace

HEADER = "u_id,user,gpu_num,cpu_num,node_num,interval,run_time,wall_time,new_status"
SWF = "; MaxProcs: 128\n; MaxNodes: 16\n; Note: Mun\xe9\n"


def swf(number: int = 1, submit: str = "0", run: str = "60", asked: str = "8") -> str:
    return f"{number} {submit} -1 {run} 4 -1 -1 {asked} 120 -1 1 7 2 -1 3 -1 -1 -1\n"


def read(tmp_path: Path, content: str | bytes, **options: object) -> Trace:
    path = tmp_path / "trace"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("latin-1"))
    return read_trace(path, TraceOptions(**options))  # type: ignore[arg-type]  # as the test gives


def test_standard_workload_format(tmp_path: Path) -> None:
    trace = read(tmp_path, SWF + swf(2, submit="30", asked="-1") + swf(1, submit="10"))
    assert (trace.processors, trace.machine_nodes, trace.unit) == (128, 16, "cpu")
    first, second = trace.jobs
    assert (first.name, first.user, first.queue, first.arrival_s) == ("1", "7", "3", 0)
    assert (first.run_s, first.limit_s, first.size) == (60, 120, 8)
    assert (second.arrival_s, second.size) == (20, 4), "the allocated processors"


def test_partial_executions_are_parts_of_the_job_of_an_earlier_line(tmp_path: Path) -> None:
    partial = "1 -1 5 30 4 -1 -1 8 120 -1 {} 7 2 -1 3 -1 -1 -1\n"
    trace = read(tmp_path, SWF + swf(1) + partial.format(2) + partial.format(3) + swf(2))
    assert [job.name for job in trace.jobs] == ["1", "2"]
    assert trace.left_out == {"partial execution (status 2 to 4)": 2}


def test_a_table_with_columns_in_another_order(tmp_path: Path) -> None:
    text = "run_time,node_num,submit_time,extra\n5,3,100,x\n0,2,160,y\n"
    first, second = read(tmp_path, text).jobs
    assert (first.size, first.run_s, first.arrival_s, first.user) == (3, 5, 0, "unknown")
    assert (second.run_s, second.arrival_s) == (1, 60)


def test_compressed_traces_and_windows_lines(tmp_path: Path) -> None:
    text = f"{HEADER}\r\n0,a,0,64,1,0,5,9,Pass\r\n1,a,2,64,1,90000,5,0,Pass\r\n"
    trace = read(tmp_path, gzip.compress(text.encode()))
    assert trace.unit == "gpu"
    assert trace.left_out == {"without a size": 1}
    assert read(tmp_path, text, size_by="node").jobs[1].arrival_s == 86_400


def test_jobs_without_a_run_time_are_left_out_or_refused(tmp_path: Path) -> None:
    text = swf(1) + swf(2, run="-1")
    assert read(tmp_path, text).left_out == {"without a run time": 1}
    with pytest.raises(InvalidTrace, match="line 2: job 2 is without a run time"):
        read(tmp_path, text, strict=True)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("", "must have jobs, is empty"),
        ("\n \n", "must have jobs, is empty"),
        ("; only\n", "only comments"),
        (HEADER, "must have a job that can be simulated: it has none"),
        (b"\x1f\x8bbroken", "must be a whole gzip file"),
        (b"a\0b", "must be text"),
        (b"\xff\xfe\xfa", "must have a column run_time"),
        ("u_id,interval,node_num\n1,2,3\n", "line 1: must have a column run_time"),
        ("run_time,node_num\n1,2\n", "must have a column interval or submit_time"),
        ("run_time,interval\n1,2\n", "must have a column gpu_num or node_num or cpu_num"),
        ("run_time,run_time,interval,node_num\n", "'run_time' twice"),
        ("run_time,interval,node_num\n1,2\r3,4\n", "line 2: must be comma-separated values"),
        ("run_time,interval,node_num\n1,2\n", "line 2: must have 3 columns, has 2"),
        ("run_time,interval,node_num\n1,-5,3\n", "line 2, column interval: must not be negative"),
        ("run_time,interval,node_num\nx,5,3\n", "line 2, column run_time: must be a number"),
        ("run_time,interval,node_num\ninf,5,3\n", "line 2, column run_time: must be a number"),
        ("run_time,interval,node_num\n1,5,2.5\n", "line 2, column node_num: must be a whole"),
        (swf() + "2 5 6\n", "line 2: must have 18 columns, has 3"),
        (swf(submit="-1"), "line 1, field 2 (submit time): must be known"),
        (swf(run="-7"), "line 1, field 4 (run time): must not be negative"),
        (swf(run="1_0"), "line 1, field 4 (run time): must be a number"),
        (swf(run="\xb2"), "line 1, field 4 (run time): must be a number"),
        (swf(run="nan"), "line 1, field 4 (run time): must be a number"),
        (swf(asked="2.5"), "line 1, field 8 (requested processors): must be a whole number"),
        (SWF + swf().replace("-1 60", "x 60"), "line 4, field 3 (wait time): must be a number"),
        (swf().replace(" 1 7 ", " 6 7 "), "line 1, field 11 (status): must be 0 to 5, is 6"),
        (swf().replace(" 1 7 ", " 0.5 7 "), "line 1, field 11 (status): must be a whole number"),
        (swf().replace(" -1\n", "\n"), "line 1: must have 18 columns, has 17"),
        (swf().replace("1 0", "1.5 0"), "line 1, field 1 (job number): must be a whole number"),
        ("# a comment\n\nrun_time,interval\n1,2\n", "line 3: must have a column gpu_num"),
        (swf(run="1e99"), "line 1, field 4 (run time): must be a number of at most"),
        (swf(run="-1"), "must have a job that can be simulated: 1 without a run time"),
    ],
)
def test_invalid_traces_are_refused(tmp_path: Path, content: str | bytes, rule: str) -> None:
    with pytest.raises(InvalidTrace) as refused:
        read(tmp_path, content)
    assert rule in str(refused.value)

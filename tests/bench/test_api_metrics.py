from bench import api_metrics

METRICS = """\
# HELP apiserver_request_total [STABLE] Counter of apiserver requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",\
scope="resource",subresource="binding",verb="POST",version="v1"} 10
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="pods",\
scope="resource",subresource="binding",verb="POST",version="v1"} 2
apiserver_request_total{code="201",component="apiserver",dry_run="All",group="",resource="pods",\
scope="resource",subresource="binding",verb="POST",version="v1"} 5
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",\
scope="cluster",subresource="",verb="LIST",version="v1"} 7
apiserver_request_total{code="200",component="apiserver",dry_run="",group="flowcontrol.apiserver\
.k8s.io",resource="flowschemas",scope="resource",subresource="status",verb="PATCH",version="v1"} 3
apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="cluster",\
subresource="",verb="WATCH",version="v1"} 3
apiserver_longrunning_requests{component="apiserver",group="",resource="nodes",scope="cluster",\
subresource="",verb="WATCH",version="v1"} 9
apiserver_terminated_watchers_total{group="",resource="pods",component="apiserver"} 2
apiserver_terminated_watchers_total{group="",resource="nodes",component="apiserver"} 1
"""


def test_writes_are_counted_by_verb_and_resource_whatever_the_answer_was() -> None:
    # Reads, and what the API server writes for itself, are left out.
    assert api_metrics.writes(METRICS) == {
        "POST pods/binding": 12,
        "POST pods/binding (dry run)": 5,
    }


def test_only_what_was_written_in_between_counts_and_most_comes_first() -> None:
    before = {"POST pods": 10, "PATCH nodes": 4}
    after = {"POST pods": 11, "PATCH nodes": 4, "POST events": 3}
    assert list(api_metrics.since(before, after).items()) == [("POST events", 3), ("POST pods", 1)]


def test_only_watches_on_pods_are_counted() -> None:
    assert api_metrics.pod_watches(METRICS) == 3


def test_watches_that_the_server_ended_are_counted_over_all_kinds() -> None:
    assert api_metrics.broken_watches(METRICS) == 3
    assert api_metrics.broken_watches("") == 0

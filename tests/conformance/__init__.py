"""Volcano's recorded answers, played to Tutti.

`recorded/` holds inputs of our own with what a real Volcano made of them on a real API server:

* `recorded/admission/KIND.yaml`: requests and verdicts. `admission` plays them to the webhook's
  core in process, `live_admission` to a real API server with our CRDs and our webhook.
* `recorded/lifecycle/THEME.yaml`: steps, and after each the state of the objects. `lifecycle`
  plays them to a real control plane with the suite and `process_kubelet`:

      python -m tests.conformance.lifecycle --only job/suspend     # prints what differs

Where ours is meant to differ, `differences` says where and why; `docs/compatibility.md` says it to
users.
"""

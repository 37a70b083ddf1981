"""The structural schemas of our kinds and of Kubernetes' own workloads, and objects compared with
them. Pure.

The schemas of pods, claims and workloads are Kubernetes' own, kept beside this file as
kubernetes.json: `python -m tutti.manifests --openapi FILE…` extracts them from the output of
`kubectl get --raw` for `/openapi/v3/api/v1`, `/openapi/v3/apis/apps/v1` and
`/openapi/v3/apis/batch/v1`.
"""

"""Makes deploy/crds from the kinds in `shared.kinds`, and the chart's tables of rights from
`tutti.rights`: `make manifests` writes the files, tests prove that the committed ones are current.

The schemas of pods and claims are Kubernetes' own, kept beside this file as kubernetes.json:
`python -m tutti.manifests --openapi FILE` takes them from `kubectl get --raw /openapi/v3/api/v1`.
"""

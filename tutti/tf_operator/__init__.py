"""A stand-in for Kubeflow's tf-operator on the embedded cluster: TFJobs in, pods and gangs out.

It is a client of `tutti.cluster` in the same process. The cluster does not depend on it, and serves
TFJobs only if its settings contain `stand_in.CRD_FILE`.
"""

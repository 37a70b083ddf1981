"""A stand-in for Kubeflow's tf-operator on the embedded cluster: TFJobs in, pods and gangs out.

It is a client of `tutti.cluster` inside the same process, and not a part of it: the cluster runs
without it, and serves TFJobs only when it is given `stand_in.CRD_FILE`.
"""

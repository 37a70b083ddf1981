"""Pods of KubeRay: head and workers. Their gangs are PodGroups of other dialects."""

from typing import Final

from shared.dialects.protocol import Dialect, PodKeys

DIALECT: Final = Dialect(name="kuberay", precedence=50, role=PodKeys(labels=("ray.io/node-type",)))

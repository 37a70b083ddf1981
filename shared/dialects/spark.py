"""Pods of Spark: driver and executors. Their gangs are PodGroups of other dialects."""

from typing import Final

from shared.dialects.protocol import Dialect, PodKeys

DIALECT: Final = Dialect(name="spark", precedence=60, role=PodKeys(labels=("spark-role",)))

"""`tutti podgroup`: PodGroups of scheduling.volcano.sh."""

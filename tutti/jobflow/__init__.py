"""`tutti jobflow`: JobFlows of flow.volcano.sh."""

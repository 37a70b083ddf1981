"""What users read of a gang: phase, conditions, pending reason; and when it is published."""

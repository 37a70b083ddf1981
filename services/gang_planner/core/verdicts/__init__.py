"""The verdicts of gangs (phase, conditions, pending reason), and when they are published."""

"""`tutti simulate`: a job trace under one or more configurations, by the planner's own core."""

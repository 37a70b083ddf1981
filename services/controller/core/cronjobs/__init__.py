"""When CronJobs make Jobs, which they keep, and what they say of both."""

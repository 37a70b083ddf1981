"""`tutti cronjob`: CronJobs of batch.volcano.sh."""

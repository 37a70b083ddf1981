"""`volcano-scheduler.conf`: parsed and checked; the policies that it names."""

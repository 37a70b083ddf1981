"""`volcano-scheduler.conf`: read and checked, and the policies that it names, combined."""

"""Who is next: what waits, whose turn it is, what each queue deserves, who is admitted."""

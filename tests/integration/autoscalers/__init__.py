"""Real autoscalers beside Tutti: which nodes they buy for gangs, and which they give back."""

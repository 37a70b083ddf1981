"""The contributions of a policy, and the combined policies of one configuration."""

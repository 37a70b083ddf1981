"""What a policy may contribute, and the policies of one configuration together."""

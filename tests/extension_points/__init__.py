"""Extensions are added to a copy of the product, as a contributor would, and run there."""

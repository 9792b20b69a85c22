"""What came of a calculation: the result, what the norm promises of it, and which groups mean little."""

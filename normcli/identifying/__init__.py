"""What made somebody's result: which norm, which convention, which fault."""

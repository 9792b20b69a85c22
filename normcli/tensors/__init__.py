"""Where tensors come from and go: a file per format, and the generators. Knows nothing of norms."""

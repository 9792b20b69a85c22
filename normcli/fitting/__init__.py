"""Statistics over many files: fitted, kept in a file, merged, used, and undone."""

"""Hashes of 500 results, which are the same on every machine, by any version of NumPy, and however they were made."""

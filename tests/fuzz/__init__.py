"""Damaged files, thousands a format: what the program does with each must be one of what README documents.

`python -m tests.fuzz --seconds 600` runs it for as long as it is told; `tests/test_fuzz.py` runs the first cases.
"""

"""The command line: click over the library. Shared options once, then a file per verb; no arithmetic here."""

"""The content of answers before it is written in a format: tables, numbers, notation, excerpts, colours."""

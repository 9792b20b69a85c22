"""What there is to say, before any writer: tables, numbers, notation, excerpts, colours."""

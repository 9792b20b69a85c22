"""Chance and norms: batches drawn around one sample, whose statistics and output are watched."""

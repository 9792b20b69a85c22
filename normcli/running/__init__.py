"""Batch statistics over time: how training averages them, where they are kept, what they are folded into."""

"""Tensors drawn at random.

A `recipe` says how, `generate` makes it; `torch_stream` (`mersenne_jump` skips far) and `box_muller` are
torch's random numbers.
"""

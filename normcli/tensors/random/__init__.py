"""Tensors drawn at random.

* `generate`: a tensor from its recipe
* `mersenne_jump`: skips of any length in torch's stream
* `recipe`: distribution, stream, bounds and dtype
* `torch_stream`: torch's random numbers
"""

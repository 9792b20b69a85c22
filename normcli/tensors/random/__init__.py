"""Tensors drawn at random.

* `generate`: a tensor from its recipe, normal gamma and beta, NumPy's streams
* `mersenne_jump`: skips of any length in the Mersenne Twister
* `recipe`: distribution, stream, bounds and dtype, checked
* `torch_stream`: torch's random numbers
"""

"""A norm as code: by hand, in the arrays of NumPy or of a framework, or with the framework's own call.

* `arrays`: templates of array operations in NumPy, torch, Keras, Flax, TensorFlow and ONNX
* `by_hand`: code from a norm's formulas: means, roots and power iterations over whole arrays
* `model`: a norm as an ONNX model
* `module`: a norm as a formatted Python module: docstring, imports, constants, `normalize`, `__main__`
* `own_call`: the lines of a framework's own call, with the axes in its order
* `task`: a plan with its inputs, and the code that makes, draws or loads each tensor
"""

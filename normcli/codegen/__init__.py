"""A norm as code: by hand, in the arrays of NumPy or of a framework, or with the framework's own call.

* `arrays`: each framework's spelling of means, roots and other array operations
* `by_hand`: the lines where a framework has no call of its own: the norm's definitions, over whole arrays
* `model`: a norm as an ONNX model
* `module`: a norm as a Python module, in lines as a formatter leaves them
* `own_call`: the lines of a framework's own call, with the axes in its order
* `task`: a plan with its inputs, and the code that makes or loads each tensor again
"""

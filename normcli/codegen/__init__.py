"""A norm as code: by hand, in the arrays of NumPy or of a framework, or with the framework's own call.

* `arrays`: each framework's spelling of means, roots and other array operations
* `by_hand`: the lines of a norm by hand, from its formulas, over whole arrays
* `model`: a norm as an ONNX model
* `module`: a norm as a Python module, in lines as a formatter leaves them
* `own_call`: a framework's own call
* `task`: the request, its plan, and the code that makes or loads its tensors again
"""

"""A request as code: by hand, in the arrays of NumPy or of a framework, and by the framework's own call.

* `arrays`: how each framework writes means, roots and the like
* `by_hand`: the lines of a norm by hand, from its formulas, over whole arrays
* `model`: a request as an ONNX model
* `module`: a request as a Python module, in lines as a formatter leaves them
* `own_call`: a framework's own call
* `task`: the request, its plan, and the code that makes or loads its tensors again
"""

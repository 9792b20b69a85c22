"""Whole models: a run is recorded, every norm in it is judged, and the first bad one is named.

* `record`: the norms of a model, recorded while it runs
* `record_torch`: the hooks of torch's modules
* `modules`: which norm a module is, by its class
* `dump_file`: the file of a recorded run: tensors by name, settings of layers
* `layer`: the layers of a run, opened
* `alike`: layers whose norm nobody named: one of several alike is identified, the others compared with it
* `audit`: layers compared with the exact norms
* `running_check`: running statistics compared with those that follow from the batches
* `onnx_graph`: the norms of an ONNX graph
* `onnx_run`: a run of an ONNX model, as a dump
* `onnx_fold`: batch norms of an ONNX graph behind layers, into which they can be folded
* `runs`: two runs side by side
"""

"""Whole models: a run is recorded, every norm in it is judged, and the first bad one is named.

* `record`: `normcli.record`: the norms of a PyTorch, Keras or Flax model, recorded while it runs
* `record_torch`: the hooks of torch's modules, for inputs, outputs and gradients
* `modules`: which norm a module is, by its class and attributes
* `dump_file`: the format of a dump: tensors by name, settings of layers; written and read
* `layer`: opens a dump, a folder of arrays or `--pairs`, as a list of layers with their tensors
* `alike`: identifies layers of unknown norm, and tries a norm found on later layers of the same class
* `audit`: each layer's output, gradients and running statistics compared with the exact ones
* `layer_verdict`: the verdicts on a tensor, a layer and a run
* `running_check`: running statistics compared with those that follow from the batches
* `onnx_graph`: the norms of an ONNX graph
* `onnx_run`: an ONNX model run on inputs, its norms written as a dump
* `onnx_fold`: pairs of layer and batch norm in an ONNX graph, for `fold`
* `runs`: `audit --against`: two recorded runs compared layer by layer
"""

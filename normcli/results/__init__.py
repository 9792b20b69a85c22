"""Results of a calculation: statistics and values, checks of the norm's promises, degenerate groups.

* `normalize`: the function `normcli.normalize`, with every option as an argument
* `arguments`: the arguments of Python functions, read into a `Problem`: plan, tensor and inputs
* `given_inputs`: gamma, beta, running statistics, masks and lengths, fitted to a plan
* `surroundings`: clipping and a gate, before and after a norm
* `arrays`: takes and gives back tensors and tables of torch, JAX, pandas, polars, xarray, dask
* `array_reading`: reads one array of another library into NumPy's (DLPack, bfloat16, GPU)
* `calculate`: a plan applied to a tensor: makes a `Result`, whose statistics are calculated when looked up
* `result`: `Result`: statistics, normalized values and warnings, calculated when asked for
* `normalized_part`: normalized values of an index or slice of a tensor
* `promises`: whether the output's mean is 0 and its variance 1, or whatever else the norm promises
* `degenerate_groups`: warnings of groups that are empty, constant or not finite
* `framework_departures`: warnings where a framework's own result would differ
* `backward`: the function `normcli.backward`: gradients dx, dgamma and dbeta
* `gradient_reach`: which values of dx change with one value of dy
"""

"""Results of a calculation: statistics and values, checks of the norm's promises, degenerate groups.

* `normalize`: `normcli.normalize`: every option an argument
* `arguments`: arguments of Python functions as a plan, a tensor and inputs
* `given_inputs`: gamma, beta, running statistics and masks, fitted to a plan
* `surroundings`: bounds and a gate before and behind a norm
* `arrays`: arrays and tables of other libraries, taken and given back
* `array_reading`: an array of another library as NumPy's, without importing that library
* `calculate`: a plan carried out
* `result`: `Result`: statistics, normalized values and warnings, calculated when asked for
* `normalized_part`: normalized values of a part of a tensor
* `promises`: mean 0 and variance 1: whether the output keeps them
* `degenerate_groups`: groups that are empty, constant or not finite
* `framework_departures`: where a framework's own result would differ
* `backward`: dx, dgamma and dbeta
* `gradient_reach`: which dx change with one value of dy
"""

"""A norm's exact result, stored in few bits: scales by a format's rule, and codes.

* `blocks`: codes and losses (signal-to-noise ratio, saturation) of an array in memory, in threads
* `codes`: quotients rounded to FP8, FP4 or int8; encoding to bits, and decoding
* `formats`: the table of formats (int8, FP8, MX, NVFP4), scale rounding; `--quantize` and `--per` read
* `judging`: `check --quantize`: a kernel's codes and scales compared with the exact ones
* `kernel_rules`: the ways in which kernels make scales and codes, tried on scales and codes that differ
* `quantize`: a norm's result as scales and codes; the signal-to-noise ratio in each format
* `scales`: scales calculated from the largest magnitude (amax), encoded and decoded
* `sharing`: which values share a scale: tensor, token, channel, block:N; shapes of scales
* `tile_sinks`: scales and codes of a large norm, tile by tile as the engine calculates it
"""

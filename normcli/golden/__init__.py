"""Files with an input, parameters and exact results, for the tests of other projects.

* `golden`: golden files written, read and checked
* `manifest`: `manifest.json`, read and refused: the request, the files, their hashes
"""

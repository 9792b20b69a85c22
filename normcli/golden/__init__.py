"""Files with an input, parameters and exact results, for the tests of other projects.

* `golden`: writes a folder of golden files, and verifies one
* `manifest`: `manifest.json`: read, and compared with the folder: request, recipe, files, SHA-256
"""

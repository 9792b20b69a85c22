"""Files with an input, parameters and exact results, for the tests of other projects.

* `golden`: golden files written, read and checked
* `manifest`: `manifest.json`: the request, the files, their hashes
* `manifest_members`: members of a manifest, read and refused
"""

"""Options and arguments of the command line.

* `options`: the options that several commands share
* `settings`: the options of one command line as typed records
* `types`: texts read as values
"""

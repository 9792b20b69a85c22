"""What a command line may say.

* `options`: the options that several commands share
* `settings`: the options of one command line as typed records
* `types`: texts read as values
"""

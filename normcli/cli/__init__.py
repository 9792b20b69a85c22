"""The command line: click over the library, without arithmetic.

* `commands`: the names of all norms and verbs, their lines of help, suggestions for wrong names
* `files`: inputs and outputs that a command line names
* `languages`: the option `--lang`, and help texts in the language that it chooses
* `main`: the click command `normcli`, which imports a verb's module when the verb is called
* `manual`: the man page
* `parameters`: options, and the typed records of their values
* `problem`: tensor, plan, gamma, beta, running statistics, loaded from the options
* `progress`: the progress bar
* `run`: a call of the program: exit codes, messages of errors, signals
* `verb_commands`: the record of a verb, and the click commands built from it
* `verbs`: a file for each verb
"""

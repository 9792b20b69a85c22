"""Each verb's answer, made of results, as a document."""

"""`python -m tests.language`: renew the catalogues from the messages of the code, and compile them."""

import sys

from normcli.language import LANGUAGES
from tests.language.catalogue import compile_mo, find_catalogue, format_po, renew

if __name__ == "__main__":
    missing = []
    for language in LANGUAGES[1:]:
        catalogue, untranslated = renew(language, {})
        path = find_catalogue(language)
        path.write_bytes(format_po(catalogue))
        path.with_suffix(".mo").write_bytes(compile_mo(catalogue))
        missing += [f"{path}: {message}" for message in untranslated]
    sys.exit("\n".join(["without a translation:", *missing]) if missing else 0)

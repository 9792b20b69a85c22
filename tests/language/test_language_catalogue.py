"""The catalogues have every message of the code, and no other."""

import gettext
import re
from pathlib import Path

import pytest

from normcli.language import FOLDER, LANGUAGES
from normcli.language.reading import PLACE, Reader, find_foreign_words
from tests.language.messages import find_messages, find_words

pytestmark = pytest.mark.slow  # reads all of the code, which takes two seconds

CATALOGUES = [Path(FOLDER) / language / "LC_MESSAGES" / "normcli.mo" for language in LANGUAGES[1:]]


@pytest.fixture(scope="module")
def messages():
    return find_messages()


@pytest.fixture(scope="module", params=CATALOGUES, ids=LANGUAGES[1:])
def catalogue(request):
    with request.param.open("rb") as file:
        return {key: said for key, said in vars(gettext.GNUTranslations(file))["_catalog"].items() if key}


def test_no_message_is_untranslated(messages, catalogue):
    assert [message for message in messages if not catalogue.get(message)] == []


def test_no_message_is_stale(messages, catalogue):
    """A message that is written by hand (a word, or a part of what code joins) has no words that the code has not."""
    known = set(re.findall(r"[a-z]{2,}", " ".join([*find_words(), *messages]).lower()))
    stale = [
        message
        for message in set(catalogue) - set(messages)
        if not set(re.findall(r"[a-z]{2,}", PLACE.sub("", message).lower())) <= known
    ]
    assert stale == []


def test_translations_have_the_values_of_their_messages(catalogue):
    """They may leave one out: a plural, a verb that agrees."""
    assert [
        message
        for message, said in catalogue.items()
        if not {place for place, _ in PLACE.findall(said)} <= {place for place, _ in PLACE.findall(message)}
        or len(PLACE.findall(message)) - len(PLACE.findall(said)) not in (0, 1, 2)
    ] == []


def test_every_message_reads_back(catalogue):
    """A text that is made of a message is read as that message, or as another that says it."""
    reader = Reader(catalogue)
    texts = {message: PLACE.sub("7", message).strip() for message in catalogue}
    assert [
        message
        for message, text in texts.items()
        if not message.startswith(" ")  # the page's script looks those up
        and find_foreign_words(text)
        and reader.translate(text) == text
        and catalogue[message] != message
    ] == []


def test_the_compiled_catalogue_is_that_of_the_text():
    pytest.importorskip("babel")
    from babel.messages.mofile import read_mo

    from tests.language.catalogue import find_catalogue, format_po, load, renew

    for language in LANGUAGES[1:]:
        path = find_catalogue(language)
        with path.with_suffix(".mo").open("rb") as file:
            compiled = {message.id: message.string for message in read_mo(file) if message.id}
        assert compiled == {message.id: message.string for message in load(language) if message.id}
        assert path.read_bytes() == format_po(renew(language, {})[0])

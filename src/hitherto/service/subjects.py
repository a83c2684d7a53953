"""What a sentence is about, if only one thing can be true of it: "the port is 8080" is about the port. Pure."""

from __future__ import annotations

import re

_OPENING = re.compile(
    r"^(?:(?:by the way|btw|note that|note|fyi|actually|ok|okay|so|well|and|also|update|correction|sorry|decision"
    r"|no|yes|wait|remember|remember that|please note that|for the record|now)[,:]?\s+)+",
    re.IGNORECASE,
)
_IS = re.compile(
    r"^(?P<subject>(?:the|our|my|your|its|their)\s+[\w'’/ -]{2,60}?|[\w'’/-]+(?:\s[\w'’/-]+){0,3}?)(?:\s+now)?\s+"
    r"(?:is now|are now|is|are|will be|should be|must be|(?:was |were |has been |have been )?(?:moved|changed|raised"
    r"|lowered|set|renamed) to|listens on|runs on|runs at|lives (?:at|in)|stays|go(?:es)? to|(?:is|are) at)\s+(?P<value>\S.*)$",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\b(?P<how>my name|call me|i(?: a|['’])m called)(?:['’]s| is)?\s+\S", re.IGNORECASE)
_CHOSEN = re.compile(
    r"\b(?:use|using|with|chose|chosen|picked|selected|adopt|adopted|voted for|opted for|settled on)\s+"
    r"(?:[\w.+#-]+\s){1,3}(?:for|as)\s+(?:the |our |a )?(?P<subject>[\w' -]{3,40}?)(?:[,.;!]|$|\s(?:from|until|and|but)\b)",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^(?P<subject>[\w'’/ -]{3,40}):\s+\S", re.IGNORECASE)
_DETERMINERS = re.compile(r"^(?:the|our|your|its|their|a|an)\s+", re.IGNORECASE)
_POINTING_WORDS = (
    "it this that these those there here he she they we you i what which who one someone something everything nothing"
    " problem question reason answer point idea thing issue result next step plan todo decision note way"
)
_POINTING = frozenset(_POINTING_WORDS.split())
_VALUE = re.compile(r"[\d/`\"@]|\b[A-Z]|^\w+[.!]?$")


def subject_of(sentence: str) -> str | None:
    """What it is about, in lower case; None if that cannot be told, or if more than one thing can be true of it."""
    plain = _OPENING.sub("", sentence).strip()
    if named := _NAMED.search(plain):
        return _normal(named["how"])
    if chosen := _CHOSEN.search(plain):
        return _normal(f"for {chosen['subject']}")
    if (told := _IS.match(plain)) and _VALUE.search(told["value"]):
        return _normal(told["subject"])
    if label := _LABEL.match(plain):
        return _normal(label["subject"])
    return None


def _normal(subject: str) -> str | None:
    bare = " ".join(_DETERMINERS.sub("", subject.strip()).lower().split())
    words = bare.split()
    return bare if words and words[0] not in _POINTING and words[-1] not in _POINTING else None

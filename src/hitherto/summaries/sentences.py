"""The sentences of what somebody wrote: no code, no quotations, nothing that a program put there. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MOST_CHARS = 64_000
"""No more of one text is looked at."""
SENTENCE_CHARS = 500
"""Longer sentences are cut: nothing that reads them takes more than linear time, and this bounds the rest."""
WRAPPED = 50
"""A line of at least so many characters without an end may continue in the next."""
MOST_BLOCKS = 100

_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_CODE = re.compile(r"(?: {4}|\t).*[=(){}\[\];<>]")
_MARK = re.compile(r"\s*(?:#{1,6}|[-*+•‣◦]|\d{1,3}[.)]|\[[ xX]\])\s+")
_EMPHASIS = re.compile(r"\*\*|__(?=\W|$)|(?<!\S)__")
# Programs write `<like_this>` or `<like-this>` around what they put into a prompt.
_INJECTED = re.compile(r"<([a-z]+[-_][a-z_-]+)>")
# Behind a full stop; and before a word that begins sentences, where somebody in a hurry has left it out.
_BEGINNING = (
    "And|But|So|Also|Then|Now|Let['’]s|What|How|Why|When|Where|Can|Could|Would|Should|Does|Did|Are|Please|Thanks|This"
    "|That|These|There|It|We|You|They|She|My|Our|If|Hm+|Okay|Yes|Great"
)
_END = re.compile(rf"""(?<=[.!?…])["'”’)\]]*\s+|(?<=[。！？])|(?<=[a-z0-9])\s+(?=(?:{_BEGINNING})[,\s])""")
_ABBREVIATED = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|No|vs|e\.g|i\.e|a\.m|p\.m|etc|incl|resp|approx|ca|cf|Inc|Ltd)\.$"
)


def sentences(text: str) -> list[str]:
    """The sentences, each as one line."""
    found = (
        sentence for line in _paragraphs(_lines(_written(text[:MOST_CHARS]))) for sentence in _split(line)
    )
    return [_shortened(sentence) for sentence in found]


def _written(text: str) -> str:
    """The text without the blocks that programs put into it."""
    for _ in range(MOST_BLOCKS):
        tag = _INJECTED.search(text)
        close = f"</{tag[1]}>" if tag else ""
        end = text.find(close, tag.end()) if tag else -1
        if tag is None or end < 0:
            return text
        text = text[: tag.start()] + "\n" + text[end + len(close) :]
    return text


def _lines(text: str) -> Iterator[str]:
    """The lines of prose, without marks of lists and headings; an empty one where a paragraph ends."""
    fence = ""
    for line in text.splitlines():
        if opened := _FENCE.match(line):
            fence = "" if fence == opened[1] else fence or opened[1]
            yield ""
        elif not fence:
            yield from _line(line)


def _line(line: str) -> Iterator[str]:
    bare = line.strip()
    if not bare or bare[0] in "|>" or bare.startswith(("---", "===")) or _CODE.match(line):
        yield ""
        return
    if marked := _MARK.match(line):
        yield ""
        bare = line[marked.end() :].strip()
    yield _EMPHASIS.sub("", bare)


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Lines joined with those that continue them."""
    whole = ""
    for line in lines:
        goes_on = len(whole) >= WRAPPED and line[:1].islower() and whole[-1:] not in ".!?:;。！？"
        if goes_on:
            whole = f"{whole} {line}"
            continue
        if whole:
            yield whole
        whole = line
    if whole:
        yield whole


def _split(line: str) -> Iterator[str]:
    waiting = ""
    for piece in _END.split(line):
        waiting = f"{waiting} {piece}".strip()
        if not _ABBREVIATED.search(waiting[-12:]) or len(waiting) > SENTENCE_CHARS:
            if waiting:
                yield " ".join(waiting.split())
            waiting = ""
    if waiting:
        yield " ".join(waiting.split())


def _shortened(sentence: str) -> str:
    if len(sentence) <= SENTENCE_CHARS:
        return sentence
    cut = sentence[: SENTENCE_CHARS - 1]
    gap = cut.rfind(" ")
    return cut[: gap if gap > SENTENCE_CHARS // 2 else None] + "…"


_WORDS = """
a about above actually after again all almost also although always am an and another any anyway are around as at
away back basically be because been before being below between both but by came can cannot could did do does doing
done down during each either else even ever every everything few finally first for from further get gets getting
given go goes going got had has have having he hello her here hers hey him his how however i if in indeed instead
into is it its itself just keep last later least less let like lot made make makes many maybe me meanwhile might
mine more moreover most much must my never next no nor not nothing now of off often okay on once one only onto or
other otherwise our ours out over own per perhaps please put quite rather really right same say says see she should
since so some something still such sure take than thank thanks that the their them then there therefore these they
thing things this those though through thus till to today together tomorrow too toward tried try two under unless
until up upon us use used uses using very via was way we well went were what whatever when where whether which
while who whom whose why will with within without would yes yesterday yet you your yours
'd 'll 'm 're 's 't 've d didn doesn don isn ll m re s t ve won
"""
STOPWORDS = frozenset(_WORDS.split())


_OPENING = re.compile(
    r"^(?:(?:by the way|btw|note that|note|fyi|actually|ok|okay|so|well|and|also|update|correction|sorry|decision"
    r"|no|yes|wait|remember|remember that|please note that|for the record|now|change of plans?|plans? changed|new plan"
    r"|good news|bad news|my mistake|oops|scratch that|i was wrong|as of (?:today|now)|from now on|turns out)[,:;]?\s+)+",
    re.IGNORECASE,
)
_IS = re.compile(
    r"^(?P<subject>(?:the|our|my|your|its|their)\s+[\w'’/ -]{2,60}?|[\w'’/-]+(?:\s[\w'’/-]+){0,3}?)(?:\s+now)?\s+"
    r"(?:is now|are now|is|are|will be|should be|must be|(?:was |were |has been |have been |has |have |got |just )?(?:moved"
    r"|changed|raised|lowered|set|renamed|switched|updated|shifted|pushed|postponed|brought forward|cut|reduced|increased) to"
    r"|(?:has |have )?(?:went|gone|goes) (?:up|down) to|(?:has |have )?(?:rose|risen|fell|fallen|dropped|grew|grown) to"
    r"|became|has become|listens on|runs on|runs at|lives (?:at|in)|stays|go(?:es)? to|(?:is|are) at)\s+(?P<value>\S.*)$",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\b(?P<how>my name|call me|i(?: a|['’])m called)(?:['’]s| is)?\s+\S", re.IGNORECASE)
_CHOSEN = re.compile(
    r"\b(?:use|using|with|chose|chosen|picked|selected|adopt|adopted|voted for|opted for|settled on)\s+"
    r"(?:[\w.+#-]+\s){1,3}(?:for|as)\s+(?:the |our |a )?(?P<subject>[\w' -]{3,40}?)(?:[,.;!]|$|\s(?:from|until|and|but)\b)",
    re.IGNORECASE,
)
_DOING = re.compile(
    r"^(?P<subject>(?:(?:we|i|they|he|she)\s+(?:now\s+)?[a-z]+|(?:the|our|my|your|their)\s+[\w'’-]+(?:\s[\w'’-]+){0,2}?\s[a-z]+s)"
    r"\s+(?:at|on|in|from|to|with|until|by))\s+(?P<value>[\w\d].*)$",
    re.IGNORECASE,
)
"""What somebody or something does at one time, in one place, with one person."""
_CHANGED = re.compile(
    r"^(?:\w+\s+){1,2}?(?:have |has |had |just )*(?:moved|pushed|changed|raised|lowered|set|renamed|switched|postponed|shifted|cut"
    r"|reduced|increased|updated|put)\s+(?P<subject>(?:the|our|my|your|their)\s+[\w'’/ -]{2,40}?)\s+(?:back\s+|up\s+|down\s+)?"
    r"(?:to|from\s+\S.*?\s+to)\s+\S",
    re.IGNORECASE,
)
"""What somebody has given another value."""
_ASIDE = re.compile(r"^[^,;:]{2,40}[,;:]\s+(?P<rest>(?:the|our|my|your|their)\s.*)$", re.IGNORECASE)
"""A few words in front of what is said."""
_LABEL = re.compile(r"^(?P<subject>[\w'’/ -]{3,40}):\s+\S", re.IGNORECASE)
_DETERMINERS = re.compile(r"^(?:the|our|your|its|their|a|an)\s+", re.IGNORECASE)
_POINTING_WORDS = (
    "it this that these those there here he she they we you i what which who one someone something everything nothing"
    " problem question reason answer point idea thing issue result next step plan todo decision note way"
)
_POINTING = frozenset(_POINTING_WORDS.split())
_VALUE = re.compile(r"[\d/`\"@]|\b[A-Z]|^\w+[.!]?$")


def subject_of(sentence: str) -> str | None:
    """What it is about, in lower case; None if that is unclear, or if more than one thing can be true of it."""
    plain = _OPENING.sub("", sentence).strip()
    if named := _NAMED.search(plain):
        return _normal(named["how"])
    if changed := _CHANGED.match(plain):
        return _normal(changed["subject"])
    if chosen := _CHOSEN.search(plain):
        return _normal(f"for {chosen['subject']}")
    if (stated := _IS.match(plain)) and _VALUE.search(stated["value"]):
        return _normal(stated["subject"])
    if label := _LABEL.match(plain):
        return _normal(label["subject"])
    if (doing := _DOING.match(plain)) and _VALUE.search(doing["value"]):
        bare = _DETERMINERS.sub("", doing["subject"]).lower()
        return " ".join(word for word in bare.split() if word != "now")
    aside = _ASIDE.match(plain)
    return None if aside is None else subject_of(aside["rest"])


def _normal(subject: str) -> str | None:
    bare = " ".join(_DETERMINERS.sub("", subject.strip()).lower().split())
    words = bare.split()
    return bare if words and words[0] not in _POINTING and words[-1] not in _POINTING else None

"""Turns of phrase by which a sentence tells that it is worth remembering, or that it is not. English first. Pure.

A table of patterns, each with what it makes of the sentence and how sure that is. A weak one needs something specific
beside it: "I'll look at it" says nothing, "I'll send it to Ann on Friday" does. All of them are for a sentence in lower
case, which is searched twice as fast as one in any case.
"""

from __future__ import annotations

import re
from typing import NamedTuple

STRONG, FAIR, WEAK = 0.75, 0.55, 0.35


class Cue(NamedTuple):
    """A turn of phrase, what kind of fact it makes, and how sure that is."""

    kind: str
    weight: float
    pattern: re.Pattern[str]


def _cue(kind: str, weight: float, *patterns: str) -> Cue:
    return Cue(kind, weight, re.compile("|".join(f"(?:{pattern})" for pattern in patterns)))


_I = r"\b(?:i|we)(?:['’]?(?:d|ll|ve|m|re))?(?: (?:really|much|would|do|also|always|usually|strongly|personally|are|am|have))*"
_NOT = r"(?:don['’]?t|do not|never|doesn['’]?t|won['’]?t|must ?n['’]?t|should ?n['’]?t|can['’]?t|cannot|mustn['’]?t)"
_START = r"^(?:(?:ok|okay|yes|and|so|also|then|now|please|well|great|fine|right|oh|btw|by the way)[,:]? )*"
_LOOK = "look|check|see|take a look|try|let|be back|have a look|think|continue|help|start by"
_DO = (
    "use|set|keep|put|add|update|change|rename|remove|delete|create|make|write|send|tell|ask|fix|deploy|run|start|stop"
    "|enable|disable|move|copy|open|close|call"
)
_STATE = (
    "go|come|run|live|listen|take|cost|contain|hold|read|write|use|need|support|return|expect|start|end|sit|lie|keep"
    "|deploy|find"
)
_WAS = "found|put|built|set|sent|made|went|got|came|ran|took|wrote"

CUES: tuple[Cue, ...] = (
    _cue(
        "question",
        STRONG,
        r"\bopen (?:question|point|issue)s?\b",
        r"\bstill (?:open|unclear|undecided|unknown|unresolved)\b",
        r"\b(?:unclear|undecided|unresolved|tbd|to be (?:decided|determined|clarified))\b",
        r"\b(?:have|has)(?:n['’]?t| not) (?:yet )?(?:been )?(?:decided|settled|agreed|figured|heard|confirmed|answered)\b",
        r"\bnot (?:yet )?(?:decided|settled|clear|sure yet|answered)\b",
        r"\bneed to (?:find out|decide|clarify|figure out)\b",
        r"\b(?:remains|is) to be (?:seen|decided)\b",
        r"\bparked\b",
        r"\bwaiting (?:for|on) (?:a |an |the )?(?:answer|decision|reply)\b",
    ),
    _cue(
        "identity",
        STRONG,
        r"\bmy (?:full |first |last |user ?|nick)?name(?:['’]s| is)\b",
        r"\bcall me\b",
        r"\bi work (?:at|for|as|in|on|with)\b",
        r"\bi live (?:in|at|near)\b",
        r"\bi(?: a|['’])m (?:based|located|called|named|responsible|in charge|allergic|from)\b",
        r"\bi was born\b",
        r"\bi(?: a|['’])m \d",
        r"\bi weigh\b",
        r"\bi go by\b",
        r"\bis my \w+",
        r"\b(?:je m['’]appelle|ich hei(?:ß|ss)e|me llamo|mi nombre|mi chiamo|меня зовут)\b|我叫|我的名字|私は",
        r"\bmy (?:email|e-mail|phone|address|birthday|time ?zone|pronouns|handle|wife|husband|partner|son|daughter|boss|manager|team|role|job|company)\b",
        r"\b(?:is|are|was) (?:called|named|known as|nicknamed)\b",
        r"\bgoes by\b",
        r"\b(?:code ?name|named after)\b",
        r"\brefer(?:red)? to (?:it|him|her|them|the .{1,40}|.{1,40}) as\b",
    ),
    _cue(
        "identity",
        FAIR,
        r"\bi(?: a|['’])m (?:an? |the )\w+",
        r"\b(?:is|are) (?:responsible|in charge|accountable)\b",
        r"\b(?:owns?|leads?|maintains|manages|heads|reports to|signs? off|approves|reviews)\b",
        r"\b(?:contact|point person|owner|maintainer|lead|manager|reviewer|approver|sponsor|on-call)\b",
        r"\bhired\b",
        r"\bour (?:\w+ ){1,3}(?:is|are)\b",
        r"\bmy (?:\w+ ){1,3}(?:is|are|works|lives)\b",
        r"\b(?:talk|speak|write|reach out|escalate|report) to\b",
        r"\bcc\b",
    ),
    _cue(
        "preference",
        STRONG,
        rf"{_I} (?:prefer|hate|dislike|love|loathe|detest|favou?r|adore)\b",
        r"\bi(?:['’]d| would) (?:rather|prefer|like|love)\b",
        r"\b(?:can['’]?t|cannot|can not) (?:stand|bear)\b",
        r"\bfavou?rite\b",
        r"\bfan of\b",
        r"\ballerg(?:ic|y)\b",
        r"\b(?:vegan|vegetarian|gluten|lactose)\b",
        r"\bi (?:(?:really|do|only|mostly|usually|never|always) )*(?:value|appreciate|care about|enjoy|drink|eat|speak|believe in|swear by|insist)\b",
        r"\b(?:bugs|annoys|irritates|bothers) (?:me|us)\b",
        r"\bdrives? (?:me|us) (?:crazy|nuts|mad|insane)\b",
        r"\b(?:more|most|less|not) comfortable\b",
        r"\w only[.!]?$",
        rf"{_START}(?:no|only) (?!idea|problem|worries|rush|need|way|one|more)\w+",
        rf"{_START}(?:speak|answer|reply|respond|talk)\b",
        r"\b(?:je préfère|ich bevorzuge|ich mag|prefiero|preferisco|я предпочитаю)\b|我喜欢",
        r"\bfrom now on\b",
        r"\bhow i like\b",
        r"\bmy (?:preference|style|taste)\b",
        rf"{_START}(?:always|never)\b",
        rf"{_NOT} ever\b",
        r"\bi (?:don['’]?t|do not) (?:like|want|eat|drink|use|need|care for)\b",
        rf"{_START}(?:stick (?:to|with)|avoid|prefer)\b",
        r"\b(?:rule of thumb|house rule|convention|guideline)\b",
        r"\bi like\b.{0,60}\b(?:better|more|most|best)\b",
        r"\bplease (?:always|never|avoid|don['’]?t|do not|stick|prefer|refrain)\b",
        r"\b(?:no|not) .{1,40} please\b",
    ),
    _cue(
        "preference",
        FAIR,
        r"\bi (?:always|usually|only|never|mostly|generally|tend to) \w+",
        rf"{_START}keep \w+",
        r"\bmake sure\b",
        r"\bkeep (?:that |this |it )?in mind\b",
        r"\b(?:always|never)\b",
        r"\bwe (?:always |usually |only |never )?(?:use|write|follow|deploy|name|format|indent|ship|test)\b",
        r"\b(?:must|should|shall|may)(?: not|n['’]?t)? (?:be|have|use|stay|not|never|always|exceed|remain|go|run)\b",
        r"\bwhenever you\b",
        rf"{_START}(?:do not|don['’]?t) (?!worry|know|think|mind|see|understand|get|expect)\w+",
        r"\bi (?:like|enjoy|want)\b(?! to (?:see|know|understand))",
        r"\b(?:insists?|insisted) on\b",
    ),
    _cue(
        "decision",
        STRONG,
        r"\b(?:decided|decision|decisions)\b",
        r"\bsettled (?:on|for)\b",
        r"\b(?:it['’]?s |ok(?:ay)?,? |that is |that['’]?s )settled\b",
        r"\b(?:we|i|they|team)(?:['’]ve| have)? (?:\w+ )?(?:chose|chosen|picked|opted|selected|agreed|voted|committed|approved|rejected|ruled out|standardi[sz]ed)\b",
        r"\blet['’]?s (?:go|stick|switch|drop|settle|move|keep|stay|standardi[sz]e) (?:with|to|on|for|from|away)?\b",
        r"\b(?:go|going|went) with\b",
        r"\bthe (?:plan|decision|choice|verdict|agreement|winner) (?:is|was)\b",
        r"\b(?:final|made the) (?:call|answer|choice|decision)\b",
        r"\bthat['’]?s final\b",
        r"\b(?:switch(?:ed|ing)?|migrat(?:e|ed|ing)|mov(?:e|ed|ing)) (?:\w+ ){0,4}(?:to|from|over|away)\b",
        r"\b(?:no longer|any ?more|no more)\b",
        r"\b(?:dropping|dropped|deprecat\w+|sunset\w*|retir(?:e|ing|ed)|phas(?:e|ing) out|getting rid)\b",
        r"\bagreed\b[:,]",
        r"\bas (?:you )?(?:agreed|decided|discussed)\b",
    ),
    _cue(
        "decision",
        FAIR,
        rf"\b(?:we|i)(?:['’]ll| will| shall|['’]re going to| are going to|['’]m going to) (?!{_LOOK})\w+",
        r"\blet['’]?s (?:use|take|call|name|make|do|have|set)\b",
        r"\bwill (?:be|stay|remain|move|become|replace|use|run|live|go)\b",
        r"\b(?:instead of|rather than|in favou?r of|replaced? .{1,40} (?:with|by))\b",
        r"\b(?:picked|chose|chosen|opted|selected|adopted|approved|rejected)\b",
        r"\bit is (?:then|for)\b",
        r"\b(?:stays?|remains?) (?:in|on|at|with|as)\b",
        r"\bwe (?:use|are using|['’]re using|run|are on|['’]re on|['’]re stuck)\b",
        r"\bdone with\b",
    ),
    _cue(
        "task",
        STRONG,
        r"\bremind (?:me|us)\b",
        r"\b(?:remember|don['’]?t forget|do not forget)\b",
        r"\b(?:todo|to-do|action items?|next steps?|follow[- ]?ups?)\b",
        r"\bstill (?:have|has|need|needs|must|missing|to do|waiting)\b",
        r"\b(?:deadline|due (?:on|by|date|in)|promised|blocked (?:on|by))\b",
        r"\b(?:waiting|wait) (?:for|on)\b",
    ),
    _cue(
        "task",
        WEAK,
        r"\b(?:i|we)(?:['’]ll| will|['’]m going to)\b",
        r"\b(?:need|needs|have|has) to\b",
        r"\bplease\b",
        r"\b(?:by|before|until) (?:the end|next|tomorrow|tonight|monday|tuesday|wednesday|thursday|friday|saturday|sunday|noon)\b",
        rf"{_START}(?:{_DO})\b",
    ),
    _cue(
        "fact",
        FAIR,
        r"\b(?:note|notice|be aware|mind you|heads[- ]up|fyi|for the record|for your information|important|in case you need it|just so you know)\b",
        r"\b(?:it turns out|turned out|root cause|the (?:cause|reason|culprit|fix|solution|bug) (?:is|was))\b",
        r"\b(?:limit|budget|quota|sla|capacity|threshold|password hint|license|version)\b.{0,40}\b(?:is|are|of)\b",
    ),
    _cue(
        "fact",
        WEAK,
        r"\b(?:is|are|was|were|has|have|had|isn['’]?t|aren['’]?t)\b",
        r"^(?:[\w'’()/.-]+ ){0,7}[\w'’()/.-]+: ?\S",
        r"\b\w+(?:s|ed)\b",  # most verbs that tell what happens, or what was done
        rf"\b(?:{_STATE}|{_WAS})\b",
        r"[=→]",
    ),
)

DOUBT = re.compile(
    "|".join(
        (
            r"\b(?:suppose|supposing|imagine|assume|assuming|pretend|hypothetical\w*|let['’]?s say|say we|what if|as if)\b",
            r"\b(?:for (?:example|instance)|e\.g\.|such as|something like|along the lines of|some(?:thing|one|where) (?:similar|like))",
            r"^(?:\w+,? )?if\b.*\b(?:would|could|might|were|had)\b",
            r"\bif (?:you|we|i|it|they|the \w+) (?:had|were)\b",
            r"\bwere (?:to|instead)\b",
            r"\b(?:i|we) wonder\b",
            r"\bwondering\b",
            r"\b(?:i(?:['’]m| am) )?(?:just )?guess(?:ing)?\b",
            r"\b(?:not|un)sure\b(?! yet)",
            r"\bno idea\b",
            r"\bnever ?mind\b",
            r"\bforget (?:it|that|about|what)\b",
            r"\bscratch that\b",
            r"\bignore (?:that|it|what)\b",
            r"\b(?:just )?kidding\b",
            r"\bjoking\b",
            r"\bstrike that\b",
            r"\b(?:haha\w*|hehe|lol|rofl|lmao)\b",
            r"\breminds me of\b",
            r"\bwould (?:love|hate|look|be (?:nice|cool|fun|great))\b",
            r"\bone could\b",
            r"\b(?:could|might) (?:also )?(?:consider|use|try|be|hold|have|want|look)\b",
            r"\b(?:you|we) (?:might|could|may)\b",
            r"\b(?:i|we)(?:['’]d| would)? (?:recommend|suggest|propose)\b",
            r"\b(?:common|popular|typical|usual) (?:choice|option|value|pattern)\b",
            r"\ban? (?:alternative|option) (?:is|would|could)\b",
            r"\b(?:someone|somebody|a (?:friend|colleague|stranger)) (?:said|says|told|claim\w*|mentioned|wrote|posted|on|from)\b",
            r"\b(?:they say|people say|i(?:['’]ve)? heard|i read|rumou?r|claimed|allegedly|supposedly)\b",
            r"\bi (?:don['’]?t|do not) (?:think|believe|suppose)\b",
            r"\bi doubt\b",
            r"\bdoubtful\b",
            r"^(?:it|that|this)(?:['’]?s| is| was) not\b",
            r"^unless\b",
            r"\b(?:in theory|theoretically|hopefully|ideally|in principle)\b",
            r"\b(?:just testing|test test)\b",
            r"\bin (?:the|a|this|that) (?:movie|film|novel|book|song|story|game|dream|show|series)\b",
            r"\bin (?:other|some|many|most) (?:projects?|cases|teams|companies|systems)\b",
            r"\b(?:many|most|some|other) (?:teams|people|projects|developers|companies|users)\b",
            r"\b(?:placeholder|dummy|made[- ]up|fictional|foobar)\b",
        )
    ),
)
"""What a sentence with one of these says is not so, or not certainly."""

OFFER = re.compile(
    r"^if\b|\blet me know\b|\byou (?:can|may|might|could|would)\b|\bwould you\b|\bdo you (?:want|mean)\b|\bfeel free\b|\bby default\b",
)
"""What an assistant says with one of these is an offer, not a fact."""

ASKING = re.compile(
    r"^(?:(?:and|so|but|ok|okay|hm+|hey|btw)[,:]? )?(?:(?:how|what) (?:about|if)"
    r"|(?:who|where|when|why|what|how) (?:is|are|was|do|does|did|would|can)"
    r"|(?:would|is|could|should|are|does|did)n['’]?t (?:it|we|you|they|he|she|that|this|the|i|\w+ be)"
    r"|don['’]?t (?:you|we|they)|(?:have|did|do|would|could|can|are) you|should (?:we|i)|is (?:it|there|that)|any (?:idea|chance))\b",
)
"""A question, also without its mark."""

HEDGE = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|presumably|likely|might|seems?|apparently|i think|i believe|typically|usually"
    r"|in general|generally|often|sometimes|people|would|could|option|alternatively)\b",
)
"""What a sentence with one of these says is less certain."""

UNANSWERED = re.compile(
    r"\b(?:i (?:don['’]?t|do not) know|not sure|let me (?:check|find out|look|see)|get back to you|have to (?:check|ask)|no idea"
    r"|will find out|need more information|can['’]?t (?:say|tell)|cannot (?:say|tell)|good question)\b",
)
"""An answer with one of these leaves the question open."""

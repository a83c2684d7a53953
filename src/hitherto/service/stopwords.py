"""English words that say nothing by themselves: no query is about them and no name begins with one. Pure."""

from __future__ import annotations

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

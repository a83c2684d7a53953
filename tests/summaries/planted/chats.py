"""What people tell an agent in chats, in their own words, with what they correct later: written apart from the extractor.

`FIRST` and `SECOND` were measured before the extractor was changed for each; `THIRD` was written after that, and measured as it is.
"""

from __future__ import annotations

from typing import NamedTuple


class Told(NamedTuple):
    """Something said once: how one would ask for it later, and the words that the answer must have."""

    text: str
    query: str
    value: str


class Corrected(NamedTuple):
    """Something said, and corrected later."""

    before: str
    after: str
    query: str
    stale: str
    value: str


class Chats(NamedTuple):
    """What is told and corrected, between small talk."""

    told: tuple[Told, ...]
    corrected: tuple[Corrected, ...]
    talk: tuple[str, ...]


FIRST = Chats(
    told=(
        Told("My daughter Ilse turns nine on 14 March.", "daughter birthday", "14 March"),
        Told("I'm allergic to penicillin, keep that in mind.", "allergic", "penicillin"),
        Told("We live at Rosenweg 12 in Graz.", "where do we live", "Rosenweg 12"),
        Told("My flight back is LH1843 on Sunday evening.", "flight back", "LH1843"),
        Told("The landlord is called Mr Oberhuber.", "landlord name", "Oberhuber"),
        Told("I take the 7:42 train to work.", "train to work", "7:42"),
        Told("Our dentist is Dr. Wieland.", "dentist", "Wieland"),
        Told("The wifi at the cabin is named lynx-5g.", "cabin wifi", "lynx-5g"),
        Told("I don't drink coffee after noon.", "coffee", "noon"),
        Told("For dinner parties we always book Trattoria Bella.", "dinner parties book", "Trattoria Bella"),
        Told("My locker number is 288.", "locker number", "288"),
        Told("I weigh 71 kilos these days.", "weigh", "71"),
        Told("The car's plate is G-417 KL.", "car plate", "417"),
        Told("Mum's phone is +43 664 5550123.", "mum phone", "5550123"),
        Told("I'd rather you answered in Slovenian.", "answer language", "Slovenian"),
        Told("The plumber charges 85 euros an hour.", "plumber charges", "85"),
        Told("Jonas is my brother-in-law.", "brother-in-law", "Jonas"),
        Told("We have a cat named Pixel.", "cat name", "Pixel"),
        Told("I started at Alpenbau in 2019.", "started at work", "Alpenbau"),
        Told("The spare key is with our neighbour Frau Toth.", "spare key", "Toth"),
    ),
    corrected=(
        Corrected("The party is on Saturday.", "Sorry, the party is on Sunday now.", "party day", "Saturday", "Sunday"),
        Corrected("My shoe size is 43.", "Correction: my shoe size is 44.", "shoe size", "43", "44"),
        Corrected("The meeting room is B12.", "The meeting room is C07 instead.", "meeting room", "B12", "C07"),
        Corrected("We meet at 18:00.", "No, we meet at 19:30.", "meet at", "18:00", "19:30"),
        Corrected("The hotel is the Adler.", "Change of plans, the hotel is the Post.", "hotel", "Adler", "Post"),
        Corrected("The rent is 910 euros.", "The rent went up to 955 euros.", "rent", "910", "955"),
        Corrected("My doctor is Dr Haas.", "My doctor is Dr Lindner since June.", "doctor", "Haas", "Lindner"),
        Corrected("The door code is 4471.", "The door code has changed to 9012.", "door code", "4471", "9012"),
    ),
    talk=(
        "Morning! How are things?", "That made me laugh.", "Could you explain that again?", "Great, thanks a lot.",
        "It rained all day here.", "Let me think about it.", "Nice weather for a walk.", "What would you suggest?",
        "Sounds good to me.", "I was stuck in traffic forever.", "Tell me a joke.", "Never mind, it works.",
    ),
)  # fmt: skip


SECOND = Chats(
    told=(
        Told("Nephew Timo starts school in September.", "nephew school", "September"),
        Told("I can't stand cilantro.", "cilantro", "cilantro"),
        Told("My office is on the fourth floor of the Kubus building.", "office floor", "fourth floor"),
        Told("The bus that I take is the 31.", "which bus", "31"),
        Told("Our vet is Dr Marlene Auer.", "vet", "Auer"),
        Told("You can reach the school at 0316 872 4410.", "school phone", "872 4410"),
        Told("My blood type is 0 negative.", "blood type", "0 negative"),
        Told("Grandpa was born in Trieste.", "grandpa born", "Trieste"),
        Told("I'm a night owl, please no reminders before ten.", "reminders", "before ten"),
        Told("The bike lock's combination is 7-3-1-9.", "bike lock", "7-3-1-9"),
        Told("My choir rehearses on Tuesdays.", "choir rehearsal", "Tuesdays"),
        Told("Use kilometres, not miles.", "kilometres or miles", "kilometres"),
        Told("My sister Veronika moved to Bergen.", "sister", "Bergen"),
        Told("I owe Paul forty euros.", "owe Paul", "forty"),
        Told("We named the boat Sturmvogel.", "boat name", "Sturmvogel"),
        Told("The recycling is collected every second Thursday.", "recycling collected", "Thursday"),
        Told("My insurance policy is number KV-88213.", "insurance policy", "KV-88213"),
        Told("I passed the exam with a 92.", "exam", "92"),
        Told("The cleaner comes on Wednesdays at eight.", "cleaner", "Wednesdays"),
        Told("I wear glasses, minus 2.5 on both sides.", "glasses", "2.5"),
    ),
    corrected=(
        Corrected("The concert starts at 20:00.", "The concert starts at 20:30, they wrote.", "concert starts", "20:00", "20:30"),
        Corrected("My room is 214.", "They moved me, my room is 310.", "room", "214", "310"),
        Corrected("The deposit is 300 euros.", "The deposit was lowered to 250 euros.", "deposit", "300", "250"),
        Corrected("The babysitter is Lena.", "The babysitter is Mara this time, not Lena.", "babysitter", "is Lena", "Mara"),
        Corrected("I work at Kreditwerk.", "I work at Sonnenbank now.", "work at", "Kreditwerk", "Sonnenbank"),
        Corrected("The gate code is 2210.", "The gate code is 2275 as of today.", "gate code", "2210", "2275"),
        Corrected("Our trip goes to Split.", "Our trip goes to Zadar after all.", "trip", "Split", "Zadar"),
        Corrected("The deadline is 3 May.", "They pushed the deadline to 10 May.", "deadline", "3 May", "10 May"),
        Corrected("My gym is FitPoint.", "I switched gyms, my gym is Kraftraum.", "gym", "FitPoint", "Kraftraum"),
        Corrected("The tutor is free on Monday.", "The tutor is free on Friday instead.", "tutor free", "Monday", "Friday"),
    ),
    talk=(
        "Hello again.", "You are funny.", "Why is that?", "Perfect, thank you.", "The evening was lovely.",
        "I will come back to this.", "Any ideas?", "Makes sense.", "What a day.", "Let us see.", "Hm, interesting.",
        "My head hurts a bit.",
    ),
)  # fmt: skip


THIRD = Chats(
    told=(
        Told("Uncle Fritz turns seventy in November.", "uncle seventy", "November"),
        Told("I'm vegetarian, no fish either.", "vegetarian", "vegetarian"),
        Told("Our kindergarten closes at half past four.", "kindergarten closes", "half past four"),
        Told("My passport number is P4410872.", "passport number", "P4410872"),
        Told("The boiler was serviced in 2023.", "boiler serviced", "2023"),
        Told("Kristina runs the flower shop downstairs.", "flower shop", "Kristina"),
        Told("I always pay with PayLink.", "pay with", "PayLink"),
        Told("The allotment garden has number 57.", "allotment garden", "57"),
        Told("My favourite author is Zadie Smith.", "favourite author", "Zadie Smith"),
        Told("Please keep answers under five sentences.", "answers sentences", "five sentences"),
        Told("The twins are called Anton and Marie.", "twins", "Anton"),
        Told("We fly from Vienna on the 19th.", "fly from", "19th"),
        Told("I studied geology in Leoben.", "studied", "geology"),
        Told("The tax adviser wants everything by 31 January.", "tax adviser", "31 January"),
        Told("My ring size is 54.", "ring size", "54"),
        Told("There's a hidden key under the blue pot.", "hidden key", "blue pot"),
        Told("I drive a grey Octavia.", "which car drive", "Octavia"),
        Told("Our anniversary is 8 August.", "anniversary", "8 August"),
        Told("Dad's cardiologist is Professor Lang.", "cardiologist", "Lang"),
        Told("The club's membership fee is 120 euros a year.", "membership fee", "120"),
    ),
    corrected=(
        Corrected("The barbecue is on Friday.", "Oh, the barbecue is on Saturday, not Friday.", "barbecue", "is on Friday", "Saturday"),
        Corrected("My desk is number 12.", "We rearranged, my desk is number 19.", "desk", "12", "19"),
        Corrected("The course costs 400 euros.", "The course costs 380 euros with the discount.", "course costs", "400", "380"),
        Corrected("The ferry leaves at 9:15.", "The ferry leaves at 9:50, I misread.", "ferry leaves", "9:15", "9:50"),
        Corrected("My manager is Herr Stangl.", "My manager is Frau Pichler from this week.", "manager", "Stangl", "Pichler"),
        Corrected("The appointment is 4 June.", "The clinic moved the appointment to 11 June.", "appointment", "4 June", "11 June"),
        Corrected("I live in Linz.", "I live in Wels these days.", "live in", "Linz", "Wels"),
        Corrected("The alarm code is 6120.", "We changed the alarm code to 8844.", "alarm code", "6120", "8844"),
        Corrected("The price limit is 50 euros.", "Let's say the price limit is 60 euros.", "price limit", "50", "60"),
        Corrected("Our table is for six people.", "Our table is for eight people now.", "table", "six", "eight"),
    ),
    talk=(
        "Good evening!", "Ha, that is true.", "How come?", "Wonderful.", "We had soup.", "Later, maybe.", "Any news?",
        "Fair enough.", "Such a long week.", "I see.", "Okay, go on.", "My tea is cold again.",
    ),
)  # fmt: skip

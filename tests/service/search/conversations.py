"""Generated conversations between people, and questions about them that were written apart.

Each kind of event has ways to tell it and ways to ask for it. The two share a word or two of the matter itself, mostly in
other forms; the rest of the words and their order differ. Many people live through the same kinds of events, in other
places and with other things, and most of what they say is small talk.
"""

from __future__ import annotations

import random
from typing import NamedTuple

PAIRS = (
    ("Marta", "Ilya"), ("Noor", "Dwight"), ("Consuela", "Piotr"), ("Hanna", "Reuben"), ("Odile", "Kwame"),
    ("Sunita", "Gareth"), ("Lucia", "Tobias"), ("Yuki", "Brendan"), ("Amara", "Felix"), ("Greta", "Samir"),
    ("Paloma", "Anders"), ("Ingrid", "Mateo"),
)  # fmt: skip
SESSIONS_EACH = 18


class Event(NamedTuple):
    """Ways to tell something, ways to ask for it, and what it may be about: as it is told, and as it is asked for."""

    told: tuple[str, ...]
    asked: tuple[str, ...]
    about: tuple[tuple[str, str], ...]


EVENTS = (
    Event(
        ("Big news, I finally signed up for {} lessons at the community hall.", "So I had my very first {} lesson, my arms still hurt.", "They let me into the beginners' class for {}, we start with the basics."),
        ("When did {who} begin taking classes in {}?", "What did {who} enrol in to learn {}?"),
        (("pottery", "pottery"), ("fencing", "fencing"), ("salsa dancing", "salsa"), ("archery", "archery"), ("juggling", "juggling"), ("welding", "welding"), ("calligraphy", "calligraphy")),
    ),
    Event(
        ("We drove up to {} with the kids and slept in the old tent.", "The whole family camped near {}, marshmallows and all.", "Just back from {}, two nights under canvas and a bear by the bins."),
        ("Where did {who}'s family go camping, was it {}?", "How many nights did {who} camp at {}?"),
        (("Lake Morrow", "Lake Morrow"), ("Pine Ridge", "Pine Ridge"), ("the Silver Canyon", "Silver Canyon"), ("Otter Falls", "Otter Falls"), ("Juniper Bay", "Juniper Bay")),
    ),
    Event(
        ("I brought home a {} from the shelter, she hides behind the sofa.", "The shelter called: the {} is ours now!", "Meet the newest member of the household, a {} with one bent ear."),
        ("Which animal did {who} adopt, a {}?", "Where does {who}'s {} come from?"),
        (("greyhound", "greyhound"), ("tabby kitten", "tabby"), ("parrot", "parrots"), ("tortoise", "tortoise"), ("beagle puppy", "beagle"), ("hedgehog", "hedgehog")),
    ),
    Event(
        ("My {} passed away on Tuesday, we are all a bit numb.", "We buried my {} this morning, it rained the whole time.", "It has been a hard month since my {} died."),
        ("Whose funeral did {who} attend, a {}'s?", "How did {who} cope after losing a {}?"),
        (("grandmother", "grandmother"), ("uncle", "uncle"), ("old neighbour", "neighbour"), ("godfather", "godfather"), ("piano teacher", "piano teacher")),
    ),
    Event(
        ("The {} committee picked my design, it goes to print in spring!", "I won a prize for the {} poster, can you believe it?", "They framed my {} sketch and hung it in the foyer."),
        ("What award did {who} get for drawing the {}?", "Who chose {who}'s artwork of the {}?"),
        (("jazz festival", "jazz festival"), ("harbour", "harbour"), ("lighthouse", "lighthouse"), ("marathon", "marathon"), ("library", "library")),
    ),
    Event(
        ("I quit the {} on Friday and I feel ten kilos lighter.", "Handed in my notice at the {}, no regrets so far.", "After nine years I am leaving the {} for good."),
        ("Why did {who} resign from the {}?", "What job at the {} was given up by {who}?"),
        (("bakery", "bakery"), ("insurance office", "insurance company"), ("hospital", "hospital"), ("print shop", "print shop"), ("ferry company", "ferry company")),
    ),
    Event(
        ("Broke my {} falling off the ladder, six weeks in plaster.", "Slipped on the ice and fractured a {}, the nurse was lovely.", "The x-ray says the {} is cracked, no sport for me until summer."),
        ("What accident injured {who}'s {}?", "How long will {who} need for a broken {} to heal?"),
        (("wrist", "wrist"), ("ankle", "ankle"), ("collarbone", "collarbone"), ("left thumb", "thumb"), ("kneecap", "knee cap")),
    ),
    Event(
        ("We raised four hundred for the {} at the cake stall.", "The sponsored walk went well, every penny goes to the {}.", "I organised a raffle so that the {} can stay open."),
        ("For which charity did {who} raise money, the {}?", "What fundraising did {who} do to support the {}?"),
        (("hospice", "hospice"), ("food bank", "food bank"), ("donkey sanctuary", "donkey sanctuary"), ("youth club", "youth club"), ("lifeboat crew", "lifeboats")),
    ),
    Event(
        ("I ran the {} in under two hours, my shoes are ruined.", "Finished the {} dead last but finished.", "Training paid off, I beat my own record at the {}."),
        ("What time did {who} run in the {}?", "How did the {} race end for {who}?"),
        (("half marathon", "half marathon"), ("Harbour Ten", "Harbour Ten"), ("Midnight Relay", "midnight relay"), ("hill trail", "hill trails")),
    ),
    Event(
        ("Our flat has {} now, the landlord did not even apologise.", "There are {} in the kitchen again, I called three people.", "You will not believe it, {} came through the ceiling."),
        ("What problem with {} is there in {who}'s apartment?", "Who did {who} phone about the {} at home?"),
        (("mice", "a mouse"), ("ants", "ants"), ("damp", "damp"), ("wasps", "wasps"), ("moths", "moths")),
    ),
    Event(
        ("I am reading {} before bed, only a chapter a night.", "Somebody left {} on the train and I could not put it down.", "The book club chose {}, I cried at the end."),
        ("Which novel is {who} reading, {}?", "What did {who} think of the book {}?"),
        (("The Salt Garden", "The Salt Garden"), ("Winter Ledger", "Winter Ledger"), ("A Thousand Doors", "A Thousand Doors"), ("The Clockmaker's Niece", "Clockmaker's Niece"), ("Marsh Lights", "Marsh Lights")),
    ),
    Event(
        ("My sister is getting married in {}, I have to give a speech.", "The wedding is fixed: {}, eighty guests, and I am the one with the rings.", "We flew to {} for my cousin's wedding, the band was dreadful."),
        ("Who marries in {} according to {who}?", "Where is the wedding that {who} attends, {}?"),
        (("Lisbon", "Lisbon"), ("Galway", "Galway"), ("Bergen", "Bergen"), ("Valletta", "Valletta"), ("Ljubljana", "Ljubljana")),
    ),
    Event(
        ("Passed my {} exam with two points to spare!", "The letter came, I got the {} certificate.", "I failed the {} exam, next try is in autumn."),
        ("Did {who} succeed in the {} examination?", "When was {who} tested for the {} certification?"),
        (("sailing", "sailing"), ("first aid", "first aid"), ("nursing", "nurse"), ("pilot", "pilots"), ("sign language", "sign language")),
    ),
    Event(
        ("I planted {} along the fence, the slugs are already queueing.", "The {} came up overnight, I have never grown anything before.", "My allotment finally gives {}, enough for the whole street."),
        ("What is {who} growing in the garden, {}?", "How did {who}'s {} turn out after planting?"),
        (("rhubarb", "rhubarb"), ("sunflowers", "sunflower"), ("runner beans", "runner bean"), ("pumpkins", "pumpkin"), ("lavender", "lavender")),
    ),
    Event(
        ("The {} broke down on the motorway, we waited four hours for the tow truck.", "I sold the {} to a student, he paid in coins.", "We bought a second-hand {}, it smells of dog."),
        ("What happened to {who}'s vehicle, the {}?", "From whom did {who} purchase the {}?"),
        (("camper van", "camper van"), ("motorbike", "motorbike"), ("tandem", "tandem"), ("tractor", "tractor"), ("scooter", "scooters")),
    ),
    Event(
        ("The doctor says I am allergic to {}, of all things.", "No more {} for me, I swelled up like a balloon.", "I had a reaction to {} at the office party."),
        ("What allergies does {who} have, {}?", "Which food made {who} ill, was it {}?"),
        (("walnuts", "walnut"), ("shellfish", "shellfish"), ("strawberries", "strawberry"), ("sesame", "sesame"), ("celery", "celery")),
    ),
    Event(
        ("I moved into the spare room of my {} until the works are done.", "We carried everything up four floors, I now live above a {}.", "The new place is next to a {}, it is noisy but cheap."),
        ("Where is {who} living now, near a {}?", "Why did {who} move house to the {}?"),
        (("aunt", "aunt"), ("launderette", "launderette"), ("fire station", "fire station"), ("music school", "music school"), ("fish market", "fish market")),
    ),
    Event(
        ("I joined a {} on Wednesdays, twelve people and terrible coffee.", "The {} meets in the church cellar, they asked me to bring biscuits.", "They made me treasurer of the {} after two meetings."),
        ("Which group does {who} belong to, the {}?", "What role does {who} have in the {}?"),
        (("choir", "choir"), ("chess club", "chess club"), ("support group for carers", "carers"), ("knitting circle", "knitting"), ("amateur theatre", "amateur theatre")),
    ),
    Event(
        ("My {} stopped working the day after the guarantee ended.", "I dropped the {} into the sink and it only hums now.", "The man at the shop repaired my {} for a bottle of wine."),
        ("What broke down at {who}'s, the {}?", "Who fixed the {} of {who}?"),
        (("sewing machine", "sewing machine"), ("telescope", "telescope"), ("accordion", "accordion"), ("dishwasher", "dishwashers"), ("camera", "camera")),
    ),
    Event(
        ("I have started learning {} with an app and a very patient colleague.", "Ordered my lunch in {} yesterday and got soup instead of salad.", "My {} teacher says my accent is charming, which is not praise."),
        ("What foreign language is {who} studying, {}?", "How does {who} practise speaking {}?"),
        (("Finnish", "Finnish"), ("Swahili", "Swahili"), ("Portuguese", "Portuguese"), ("Korean", "Korean"), ("Welsh", "Welsh")),
    ),
)  # fmt: skip
SMALL_TALK = (
    "How have you been?", "Not too bad, thanks for asking.", "That sounds wonderful, tell me more.", "I have been so busy this week.",
    "Wow, really? I am happy for you.", "The weather here is awful again.", "Did you sleep well?", "I should call my mother more often.",
    "What are you doing at the weekend?", "Nothing special, some cleaning and a film.", "Oh no, I am sorry to hear that.",
    "Take care of yourself, please.", "We should meet for coffee soon.", "You always know what to say.", "I keep thinking about it.",
    "It was worth the effort, I suppose.", "My boss moved the meeting again.", "The train was late as usual.", "I made soup, come over if you like.",
    "That reminds me of when we were at school.", "Keep me posted!", "I could use a holiday.", "Let us talk again on Sunday.",
    "The children send their love.", "I tried a new recipe, it was edible.", "Money is tight this month.", "Have you seen the news?",
    "I believe in you.", "You deserve a break.", "It made me laugh so hard.", "I am proud of what you did.", "Same here, honestly.",
)  # fmt: skip
GREETINGS = ("Hey {}! ", "Hi {}, good to hear from you. ", "{}, hello! ", "")


class Said(NamedTuple):
    """A message."""

    who: str
    text: str


class Asked(NamedTuple):
    """A question, and where its answer is: the number of the conversation and of the message in it."""

    text: str
    session: int
    message: int


class World(NamedTuple):
    """Conversations, and questions about them."""

    sessions: list[list[Said]]
    questions: list[Asked]


def world(seed: int) -> World:
    """Conversations of all pairs, each with two or three events among small talk."""
    chance = random.Random(seed)
    made = World([], [])
    for pair in PAIRS:
        lived = [(event, about, who) for event in EVENTS for about in event.about for who in pair]
        chance.shuffle(lived)
        for _ in range(SESSIONS_EACH):
            _talk(chance, pair, [lived.pop() for _ in range(chance.choice((2, 2, 3)))], made)
    chance.shuffle(made.questions)
    return made


def _talk(
    chance: random.Random,
    pair: tuple[str, str],
    events: list[tuple[Event, tuple[str, str], str]],
    made: World,
) -> None:
    said = [Said(pair[number % 2], chance.choice(SMALL_TALK)) for number in range(chance.randrange(10, 22))]
    said[0] = Said(pair[0], chance.choice(GREETINGS).format(pair[1]) + said[0].text)
    said[1] = Said(pair[1], chance.choice(GREETINGS).format(pair[0]) + said[1].text)
    for event, (told, asked), who in events:
        free = [at for at, each in enumerate(said) if each.who == who and each.text in SMALL_TALK]
        at = chance.choice(free)
        said[at] = Said(who, chance.choice(event.told).format(told))
        if chance.random() < 0.5 and at + 1 < len(said) and said[at + 1].text in SMALL_TALK:
            said[at + 1] = Said(said[at + 1].who, f"{chance.choice(SMALL_TALK)} {who}, you are something.")
        question = chance.choice(event.asked).replace("{who}", who).format(asked)
        made.questions.append(Asked(question, len(made.sessions), at))
    made.sessions.append(said)

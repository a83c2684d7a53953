"""Friends who talk over many months, and questions about what they told each other.

Each person has a few things that matter to them. They come back to these again and again, so that the words of a question
stand in many sessions; what is asked for was told once, in one of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from tests.service.search.conversations import Asked, Said, World

PAIRS = (
    ("Nadine", "Theo"), ("Rosalind", "Akira"), ("Bettina", "Callum"), ("Farah", "Jonas"), ("Imogen", "Luca"), ("Keziah", "Stefan"),
    ("Maren", "Diego"), ("Priya", "Oskar"), ("Tamsin", "Yusuf"), ("Valerie", "Nikolai"),
)  # fmt: skip
SESSIONS_EACH = 22


class Moment(NamedTuple):
    """Something that happened, as it is told (`{}` stands for what it is about, and `{other}` for whom it is told to), what is
    answered, and how it is asked for."""

    told: str
    answered: str
    asked: str
    about: tuple[str, ...] = ("",)


class Theme(NamedTuple):
    """Something that matters to a person: what happens once, and what they say about it again and again."""

    moments: tuple[Moment, ...]
    passing: tuple[str, ...]


THEMES = (
    Theme(
        (
            Moment("I finished that canvas I kept complaining about, it's {} and I hung it above the couch.", "Wow, you should be so proud! What made you pick that?", "What canvas did {who} hang over the sofa?", ("a heron at dusk", "the old tram depot", "my grandmother's hands", "a field of poppies")),
            Moment("The little gallery on {} is showing three of my pieces until the end of the month!", "No way, {other} the artist! I'm coming to see them.", "Which gallery shows pictures by {who}?", ("Mill Street", "Fisher Lane", "Station Road")),
            Moment("I've switched from oils to {}, it dries before I can ruin it.", "Ha, I know that feeling. Are you happier with the colours?", "Which painting technique does {who} use since giving up oil?", ("gouache", "watercolour", "acrylics")),
            Moment("My teacher at the studio said I should apply for {} and I actually sent the form.", "That's a big step. When will they let you know?", "What did {who}'s teacher recommend applying for?", ("the summer residency", "the open studio weekend", "a council grant")),
        ),
        ("Painting keeps me sane, I did another hour last night.", "I've got paint under my nails again, sorry.", "The studio was freezing today but the light was lovely.", "I keep buying brushes I don't need.", "When I paint I forget what time it is."),
    ),
    Theme(
        (
            Moment("We have a new dog! {} jumped right into my lap at the rescue centre.", "Aww, send photos! How old is the little one?", "What is the name of the dog that {who} adopted?", ("Biscuit", "Captain", "Mabel", "Ziggy")),
            Moment("The vet found {} and now it's pills twice a day hidden in cheese.", "Poor thing. I hope the medicine helps quickly.", "What did the vet find when {who}'s pet was ill?", ("a heart murmur", "an ear infection", "a swallowed button")),
            Moment("Someone left the gate open and the dog ran all the way to {} before I caught up.", "You must have been terrified! Glad it ended well.", "How far did {who}'s dog run when it escaped?", ("the canal", "the petrol station", "the cemetery")),
            Moment("We started obedience school and were thrown out for {}.", "I'm laughing so hard. There must be another class?", "Why was {who} thrown out of dog training?", ("barking at the mirror", "eating the instructor's lunch", "chasing the only cat")),
        ),
        ("The dog woke me at five again.", "Long walk this morning, the dog rolled in something.", "My dog is snoring while I type this.", "You have to meet the dog soon.", "I can't come, nobody to look after the dog."),
    ),
    Theme(
        (
            Moment("I got the results: I'm through to the second round of interviews at {}.", "Yes! I knew they'd like you. What do they ask next?", "Which company interviewed {who} twice?", ("the aquarium", "the transport museum", "a firm that makes hearing aids")),
            Moment("I told my manager I'm leaving, and she offered me {} to stay.", "And? Are you tempted at all?", "What did {who}'s manager offer to prevent the resignation?", ("a four-day week", "a company car", "my own team")),
            Moment("First day in the new job. I was given {} and nobody knew my name.", "Typical! It'll get better by Friday.", "What happened on {who}'s first day at the new company?", ("a broken chair", "a desk in the corridor", "somebody else's badge")),
            Moment("I've decided to go back to university and study {} in the evenings.", "That's brave, with everything else you do.", "What degree will {who} study for at university?", ("social work", "hydrology", "early childhood education", "law")),
        ),
        ("Work has been crazy, three deadlines in one week.", "My boss wants the report again, from the beginning.", "I'm so tired after work that I fall asleep on the bus.", "The people at work are nice, at least.", "Another job advert, another application."),
    ),
    Theme(
        (
            Moment("We hiked up {} on Saturday and the fog lifted exactly when we reached the top.", "Goosebumps! I'd love to see that view.", "Which mountain did {who} hike up in the fog?", ("Ravenscar", "the Widow's Peak", "Mount Ellery")),
            Moment("The tent leaked, so we spent the night in {}.", "Oh no! At least you have a story now.", "Where did {who} sleep because the tent was leaking?", ("the car", "a sheep shed", "the campsite's laundry room")),
            Moment("The kids saw {} by the lake and talked about nothing else all week.", "How magical for them!", "What did {who}'s children see at the lake?", ("a family of otters", "two ospreys", "a meteor shower")),
            Moment("I finally bought proper boots and of course lost one of them {}.", "Only you could manage that.", "How did {who} lose a hiking boot?", ("in a bog", "crossing a stream", "on the train home")),
        ),
        ("I need to get out of the city and into the hills.", "Being outdoors with the kids is the best medicine.", "We're planning another camping trip when it gets warmer.", "My legs still hurt from the last hike.", "The mountains make my problems look small."),
    ),
    Theme(
        (
            Moment("I went to a support group for {} yesterday and for once I didn't have to explain myself.", "I'm so glad you went. That takes courage.", "When did {who} attend a support meeting for {}?", ("single parents", "people who stutter", "new immigrants", "widows")),
            Moment("My counsellor suggested writing a letter to {} and never sending it.", "Did it help to put it in words?", "To whom did {who} write an unsent letter on advice of the therapist?", ("my father", "my younger self", "my old best friend")),
            Moment("I had my first panic attack in months, right in the middle of {}.", "I'm sorry. Do you want to talk about it?", "Where was {who} when the anxiety attack came?", ("the supermarket", "choir practice", "parents' evening")),
            Moment("I'm giving a talk about what I went through at {} next month.", "People will be moved, you tell it so well.", "Where will {who} be giving a public talk?", ("the town library", "a school assembly", "the county fair")),
        ),
        ("Therapy was hard this week, but good.", "I'm learning to say no to people.", "Some days are better than others, you know?", "Talking about it helps, thank you for listening.", "I want to help others who go through the same."),
    ),
    Theme(
        (
            Moment("Our band has a name now: {}. Don't laugh.", "I'm not laughing! When is the first gig?", "What is the name of {who}'s band?", ("The Borrowed Ladders", "Quiet Carpet", "Nine Lemons")),
            Moment("I bought a second-hand {} from a retired music teacher, it smells of pipe smoke.", "Amazing, will you play something for me?", "Which instrument did {who} buy from a music teacher?", ("cello", "saxophone", "mandolin", "harmonium")),
            Moment("We played at {} and somebody actually danced.", "See, I told you the songs were good!", "At what venue did people dance when {who} was playing?", ("the bowling club", "my cousin's engagement party", "the harbour market")),
            Moment("I wrote a song about {} and cried while singing it.", "You have to send me a recording.", "What is the topic of the song composed by {who}?", ("our old flat", "my brother", "the winter we had no heating")),
        ),
        ("Band practice ran late, the neighbours complained.", "I can't get that tune out of my head.", "Music is the only thing that calms me down.", "We're rehearsing every Thursday now.", "My fingers hurt from practising."),
    ),
    Theme(
        (
            Moment("I baked {} for the school sale and they were gone in ten minutes.", "Save me one the next time!", "What did {who} bake to sell at the school?", ("cardamom buns", "a lemon drizzle cake", "cheese scones")),
            Moment("I burned my {} on the oven door, big blister, couldn't hold a pen all week.", "Ouch! Did you see a doctor?", "Which part of the body did {who} burn while cooking?", ("left palm", "forearm", "thumb")),
            Moment("I've been asked to do the catering for {} and I said yes before thinking.", "You'll be brilliant, make lists!", "For which event does {who} cater?", ("a christening", "sixty accountants", "the chess tournament")),
            Moment("I found my grandfather's recipe for {} in an old coat.", "What a treasure. Will you try it?", "What dish is the recipe for that {who} discovered from the grandfather?", ("plum dumplings", "pickled herring", "saffron rice")),
        ),
        ("Cooking for friends is my love language.", "I tried a new recipe, the kitchen looks like a battlefield.", "The cake didn't rise again.", "Come over for dinner soon, I cook too much anyway.", "I bake when I'm nervous, so there is a lot of bread."),
    ),
    Theme(
        (
            Moment("We heard from the adoption agency: {}!", "I have tears in my eyes. Congratulations!", "What news did {who} get about adopting?", ("we passed the home visit", "there will be twins", "the hearing is in May")),
            Moment("My daughter said her first whole sentence, and it was {}.", "That is priceless, write it down!", "What was the first sentence of {who}'s daughter?", ("more pancakes please", "the moon is broken", "no bath ever")),
            Moment("My son wants to be {} when he grows up, last week it was an astronaut.", "He has time to change his mind!", "What profession does {who}'s son want to have?", ("a lighthouse keeper", "a locksmith", "a beekeeper")),
            Moment("The nursery closed because of {}, so I had both kids in my video call.", "Hero of the day!", "Why did {who}'s nursery have to close?", ("a burst pipe", "chickenpox", "a strike")),
        ),
        ("The kids are finally asleep.", "Being a parent is the hardest thing I ever did.", "My children drew on the wall again.", "Family first, everything else can wait.", "The kids ask about you all the time."),
    ),
    Theme(
        (
            Moment("I ran {} kilometres without stopping for the first time in my life!", "That's incredible progress!", "How many kilometres can {who} run without a stop?", ("eleven", "fifteen", "eight")),
            Moment("I twisted my ankle {} and the physio says three weeks of rest.", "Don't you dare run before that!", "How did {who} injure the ankle?", ("stepping off a kerb", "on a pine cone", "playing tag with my nephew")),
            Moment("I signed up for the charity race in aid of {}.", "I'll sponsor you, of course.", "For what cause does {who} take part in a charity run?", ("the children's ward", "stray animals", "clean rivers")),
            Moment("My running partner moved to {}, so now I jog alone with podcasts.", "Find a club, you love company!", "Where did {who}'s running partner relocate?", ("Tromso", "Adelaide", "Halifax")),
        ),
        ("I went for a run before breakfast, who am I?", "My knees are not what they used to be.", "The new running shoes are a dream.", "Running in the rain clears my head.", "I skipped the gym again."),
    ),
    Theme(
        (
            Moment("The garden flooded and I lost all of the {}.", "After all that work! I'm sorry.", "What crop did {who} lose in the flood?", ("tomatoes", "leeks", "dahlias")),
            Moment("I built {} out of old pallets and it only leans a little.", "Very rustic! You're so handy.", "What did {who} construct from pallets?", ("a compost bin", "a bench", "a henhouse")),
            Moment("My neighbour gave me {} and now I have to read up on it.", "You'll be an expert by summer.", "What gift for the garden came from {who}'s neighbour?", ("a beehive", "a fig tree", "forty strawberry plants")),
            Moment("There is a {} living behind the shed, I leave food out every evening.", "How sweet! Don't scare it away.", "Which wild animal lives near {who}'s shed?", ("fox", "badger", "slow worm", "barn owl")),
        ),
        ("I spent the whole Sunday in the garden.", "The slugs are winning this year.", "Nothing beats vegetables that you grew yourself.", "My garden is the only place where my phone is off.", "I need more compost."),
    ),
)  # fmt: skip
CHATTER = (
    ("Hey {other}! Long time no talk. How's everything?", "Hi {other}! All good here, bit tired. And you?"),
    ("{other}! What's up? Anything new?", "Not much, the usual chaos. Good to hear from you though!"),
    ("I saw something today that made me think of you.", "Really? Now I'm curious."),
    ("How was your weekend?", "Quiet, which is just what I needed."),
    ("Do you ever feel like time is flying?", "All the time. It was January a minute ago."),
    ("Thanks for being there, {other}, it means a lot.", "Always! That's what friends are for."),
    ("I'm trying to spend less time on my phone.", "Same, and look at us now."),
    ("Have you watched anything good lately?", "Only old comedies, they cheer me up."),
    ("That is so cool, I'm really happy for you!", "Thank you {other}, it feels good to share it."),
    ("What's next for you?", "One step at a time. I'll keep you posted."),
    ("Remember when we first met?", "How could I forget! You spilled coffee on me."),
    ("It's been raining for days here.", "Here too. Perfect weather for tea and a blanket."),
)
FAREWELLS = (
    ("Talk soon, {other}!", "Bye {other}, take care!"),
    ("I have to run, speak next week?", "Sure, have a great day!"),
    ("Keep your head up!", "You too. It was great chatting."),
)


def friends(seed: int) -> World:
    """The conversations of all pairs, and the questions, in no order."""
    chance = random.Random(seed)
    made = World([], [])
    for pair in PAIRS:
        themes = {who: chance.sample(THEMES, 6) for who in pair}
        happened = [(who, moment) for who in pair for theme in themes[who] for moment in theme.moments]
        chance.shuffle(happened)
        for number in range(SESSIONS_EACH):
            told = happened[number::SESSIONS_EACH]
            _meet(chance, pair, themes, told, made)
    chance.shuffle(made.questions)
    return made


def _meet(
    chance: random.Random,
    pair: tuple[str, str],
    themes: dict[str, list[Theme]],
    told: Sequence[tuple[str, Moment]],
    made: World,
) -> None:
    """One session: small talk, what happened, and what is said again and again, in turns."""
    said = _exchange(chance.choice(CHATTER[:2]), pair)
    asked: list[tuple[str, int]] = []
    for who, moment in told:
        other = pair[1 - pair.index(who)]
        about = chance.choice(moment.about)
        asked.append((moment.asked.replace("{who}", who).format(_mine(about, who)), len(said)))
        said += [Said(who, moment.told.format(about)), Said(other, moment.answered.replace("{other}", who))]
        for _ in range(chance.randrange(1, 4)):
            speaker = chance.choice(pair)
            passing = chance.choice(chance.choice(themes[speaker]).passing)
            said += [
                Said(speaker, passing),
                Said(pair[1 - pair.index(speaker)], chance.choice(CHATTER)[1].replace("{other}", speaker)),
            ]
        if chance.random() < 0.6:
            said += _exchange(chance.choice(CHATTER[2:]), pair)
    said += _exchange(chance.choice(FAREWELLS), pair)
    made.questions.extend(Asked(text, len(made.sessions), at) for text, at in asked)
    made.sessions.append(said)


def _exchange(texts: tuple[str, str], pair: tuple[str, str]) -> list[Said]:
    first, second = pair
    return [
        Said(first, texts[0].replace("{other}", second)),
        Said(second, texts[1].replace("{other}", first)),
    ]


def _mine(about: str, who: str) -> str:
    """What somebody called theirs, as others call it."""
    return about.replace("my ", f"{who}'s ").replace("our ", "their ")

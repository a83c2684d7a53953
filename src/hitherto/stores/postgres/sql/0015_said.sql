-- Search is in the order in which things were said: a document's moment, in milliseconds since 1970 (see `words.said_at`). NULL
-- until the program has put a row of earlier schemas in order, which it does in batches while servers run; then `store_meta`
-- says so. Older programs go on in the order of numbers, and triggers fill in what they leave out.
ALTER TABLE entry ADD COLUMN said bigint;
ALTER TABLE title ADD COLUMN said bigint;

CREATE INDEX entry_said ON entry (owner, said, number) WHERE said IS NOT NULL;
CREATE INDEX title_said ON title (owner, said, number) WHERE said IS NOT NULL;
CREATE INDEX entry_unsaid ON entry (owner, log, seq) WHERE said IS NULL AND number IS NOT NULL;

-- The blocks of time that a document stands in, of 2^24 (4.7 hours), 2^27, 2^30 and 2^33 milliseconds: so a search can take the
-- newest ones first.
CREATE FUNCTION moment_marks(said bigint, mark text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN said IS NULL OR mark IS NULL THEN ''::tsvector ELSE array_to_tsvector(ARRAY[
        mark || 'e' || (said >> 24), mark || 'f' || (said >> 27),
        mark || 'g' || (said >> 30), mark || 'h' || (said >> 33)
    ]) END;

-- What stands for the owner among the words of a document, as `search.mark` has it.
CREATE FUNCTION owner_mark(words tsvector) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (SELECT lexeme FROM unnest(words) WHERE lexeme ~ '^ [-_0-9A-Za-z]{12}$' LIMIT 1);

CREATE FUNCTION bounded_moment(at numeric) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN least(greatest(coalesce(at, 0), 0), 8796093022207)::bigint;

-- When an entry was said, by its bytes. Its id comes first, in which every quotation mark is escaped, then its time.
CREATE FUNCTION moment_of(payload bytea) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN bounded_moment(substring(encode(substring(payload FROM 1 FOR 8192), 'escape') FROM '"at":(-?[0-9]+)')::numeric);

CREATE FUNCTION note_moment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.said := moment_of(NEW.payload);
    NEW.words := NEW.words || moment_marks(NEW.said, owner_mark(NEW.words));
    RETURN NEW;
END
$$;
CREATE TRIGGER said_by_older_program BEFORE INSERT ON entry
    FOR EACH ROW WHEN (NEW.said IS NULL AND NEW.number IS NOT NULL)
    EXECUTE FUNCTION note_moment();

-- A title counts as said when its session was created.
CREATE FUNCTION note_title_moment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.said := coalesce(NEW.said,
        (SELECT bounded_moment(s.created_at) FROM session s WHERE s.owner = NEW.owner AND s.num = NEW.num), 0);
    NEW.words := NEW.words || moment_marks(NEW.said, owner_mark(NEW.words));
    RETURN NEW;
END
$$;
CREATE TRIGGER title_moment BEFORE INSERT OR UPDATE ON title
    FOR EACH ROW EXECUTE FUNCTION note_title_moment();

INSERT INTO store_meta (name, value) SELECT 'order', 'time' WHERE NOT EXISTS (SELECT FROM entry) AND NOT EXISTS (SELECT FROM title);

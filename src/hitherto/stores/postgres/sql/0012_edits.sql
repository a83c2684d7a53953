-- The edits in the entries of a log, without any text: derived, and made again where they are due. `first` is the first entry
-- that a batch is of; `marks` are keyed digests of four bytes each, `data` what the edits changed.
CREATE TABLE edits (
    owner text COLLATE "C" NOT NULL,
    log   bigint NOT NULL,
    first bigint NOT NULL,
    marks bytea NOT NULL,
    data  bytea NOT NULL,
    PRIMARY KEY (owner, log, first)
);

-- Logs whose edits must be read again from their entries.
CREATE TABLE edits_due (
    owner text COLLATE "C" NOT NULL,
    log   bigint NOT NULL,
    PRIMARY KEY (owner, log)
);
INSERT INTO edits_due (owner, log) SELECT DISTINCT owner, log FROM span;

-- Whoever erases or removes an entry, an older program too: nothing that was made from it stays.
CREATE FUNCTION forget_edits_of_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM edits WHERE owner = OLD.owner AND log = OLD.log;
    INSERT INTO edits_due (owner, log) VALUES (OLD.owner, OLD.log) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER edits_of_erased AFTER UPDATE OF payload ON entry
    FOR EACH ROW EXECUTE FUNCTION forget_edits_of_entry();
CREATE TRIGGER edits_of_removed AFTER DELETE ON entry
    FOR EACH ROW EXECUTE FUNCTION forget_edits_of_entry();

CREATE INDEX session_parent ON session (owner, parent) WHERE parent IS NOT NULL;

-- Messages that came while a turn ran, until it lets them in: one row for what came together, in the order of `ordinal`.
CREATE TABLE inbox (
    owner   text COLLATE "C" NOT NULL,
    num     bigint NOT NULL,
    ordinal bigint NOT NULL,
    id      text COLLATE "C" NOT NULL,
    body    bytea NOT NULL,
    crc     bigint NOT NULL,
    PRIMARY KEY (owner, num, ordinal)
);

-- An inbox goes with its session, also if a program deletes that which does not know of inboxes.
CREATE FUNCTION empty_inbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM inbox WHERE owner = OLD.owner AND num = OLD.num;
    RETURN NULL;
END
$$;
CREATE TRIGGER inbox_of_deleted_session AFTER DELETE ON session FOR EACH ROW EXECUTE FUNCTION empty_inbox();

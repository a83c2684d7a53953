-- Messages that came while a turn ran, until it lets them in: one row for what came together, in the order of `ord`.
CREATE TABLE inbox (
    session INTEGER NOT NULL,
    ord     INTEGER NOT NULL,
    id      TEXT NOT NULL,
    body    BLOB NOT NULL,
    crc     INTEGER NOT NULL,
    PRIMARY KEY (session, ord)
) WITHOUT ROWID;

-- An inbox goes with its session, also if a program deletes that which does not know of inboxes.
CREATE TRIGGER inbox_of_deleted_session AFTER DELETE ON session
BEGIN
    DELETE FROM inbox WHERE session = OLD.num;
END;

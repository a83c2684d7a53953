-- The edits in the entries of a log, without any text: derived, and made again where they are due. `pos` is the key of the first
-- entry that a batch is of; `marks` are keyed digests of four bytes each, `data` what the edits changed.
CREATE TABLE edits (
    pos   INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    marks BLOB NOT NULL,
    data  BLOB NOT NULL
);
CREATE INDEX edits_owner ON edits (owner);

-- Logs whose edits must be read again from their entries.
CREATE TABLE edits_due (
    log   INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL
);
INSERT OR IGNORE INTO edits_due (log, owner)
SELECT p.log, s.owner FROM span AS p JOIN session AS s ON s.num = p.session;

-- Whoever erases or removes an entry, an older program too: nothing that was made from it stays.
CREATE TRIGGER edits_of_erased AFTER UPDATE OF payload ON entry
BEGIN
    DELETE FROM edits WHERE pos BETWEEN (OLD.pos >> 24) << 24 AND (OLD.pos >> 24) << 24 | 16777215;
    INSERT OR IGNORE INTO edits_due (log, owner) VALUES (OLD.pos >> 24, OLD.owner);
END;
CREATE TRIGGER edits_of_removed AFTER DELETE ON entry
BEGIN
    DELETE FROM edits WHERE pos BETWEEN (OLD.pos >> 24) << 24 AND (OLD.pos >> 24) << 24 | 16777215;
    INSERT OR IGNORE INTO edits_due (log, owner) VALUES (OLD.pos >> 24, OLD.owner);
END;

CREATE INDEX session_parent ON session (owner, parent) WHERE parent IS NOT NULL;

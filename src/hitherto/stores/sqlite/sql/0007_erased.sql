-- What was erased, so that it is left out when it is read again. `session` is the id of the session as its source knows it,
-- `mark` the id of the record or a keyed digest of it: see `service/history/erased.py`. It outlives the session.
CREATE TABLE erased (
    owner   INTEGER NOT NULL,
    session TEXT NOT NULL,
    mark    TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (owner, session, mark)
) WITHOUT ROWID;
CREATE INDEX erased_mark ON erased (owner, mark);

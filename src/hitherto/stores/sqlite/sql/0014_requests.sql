-- What each request to a model has used; derived from `entry`, in the background. `pos` is that of the entry with the answer.
-- `key` is the same for the same request in forks, copies and mirrors. cost is in millionths of a dollar, NULL if not known.
CREATE TABLE request (
    owner       INTEGER NOT NULL,
    pos         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    model       TEXT NOT NULL,
    key         INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost        INTEGER,
    reported    INTEGER NOT NULL,
    PRIMARY KEY (owner, pos)
) WITHOUT ROWID;
CREATE INDEX request_at ON request (owner, at);

-- Up to where the requests of a log are counted.
CREATE TABLE counted (
    owner INTEGER NOT NULL,
    log   INTEGER NOT NULL,
    head  INTEGER NOT NULL,
    PRIMARY KEY (owner, log)
) WITHOUT ROWID;

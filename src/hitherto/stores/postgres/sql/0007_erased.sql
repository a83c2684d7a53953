-- What was erased, so that it is left out when it is read again. `session` is the id of the session as its source knows it,
-- `mark` the id of the record or a keyed digest of it: see `service/history/erased.py`. It outlives the session.
CREATE TABLE erased (
    owner   text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    mark    text COLLATE "C" NOT NULL,
    at      bigint NOT NULL,
    PRIMARY KEY (owner, session, mark)
);

CREATE INDEX erased_mark ON erased (owner, mark);

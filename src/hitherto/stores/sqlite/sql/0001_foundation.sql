-- Times are milliseconds. Text that may hold NUL or lone surrogates (folders, titles) and all JSON is kept as bytes.

CREATE TABLE store_meta (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;

-- One row: the highest number of a document that is gone, so that no number is ever given twice.
CREATE TABLE newest_gone (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL
);
INSERT INTO newest_gone VALUES (1, 0);

CREATE TABLE owner (
    num  INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

-- `num` is the session's number and that of its own log: AUTOINCREMENT never gives one twice.
-- head and log_* describe the session's own log; change is the number of the session's newest change.
-- Lists are ordered by active_at. An append moves only that and marks the session as hot; order_at, which the indexes
-- of lists hold, follows when many sessions are hot: an append then writes half as many pages.
CREATE TABLE session (
    num             INTEGER PRIMARY KEY AUTOINCREMENT,
    owner           INTEGER NOT NULL,
    id              TEXT NOT NULL,
    revision        INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    active_at       INTEGER NOT NULL,
    order_at        INTEGER NOT NULL,
    hot             INTEGER NOT NULL,
    cwd             BLOB,
    directories     BLOB,
    title           BLOB,
    title_by        TEXT,
    earlier_titles  BLOB,
    tags            BLOB,
    status          TEXT NOT NULL,
    archived        INTEGER NOT NULL,
    pinned          INTEGER NOT NULL,
    key             TEXT,
    agent_id        TEXT,
    channel         TEXT,
    identity        BLOB,
    message_count   INTEGER NOT NULL,
    token_count     INTEGER,
    error_count     INTEGER NOT NULL,
    cost            INTEGER,
    bytes           INTEGER NOT NULL,
    last_compaction INTEGER,
    parent          TEXT,
    parent_entry    TEXT,
    source          TEXT,
    read_at         INTEGER,
    meta            BLOB,
    head            INTEGER NOT NULL,
    log_tokens      INTEGER NOT NULL,
    log_errors      INTEGER NOT NULL,
    log_cost        INTEGER NOT NULL,
    log_bytes       INTEGER NOT NULL,
    lease_holder    TEXT,
    lease_fence     INTEGER,
    lease_acquired  INTEGER,
    lease_expires   INTEGER,
    change          INTEGER NOT NULL,
    change_kind     TEXT NOT NULL,
    title_number    INTEGER,
    title_words     TEXT
);
CREATE UNIQUE INDEX session_id ON session (owner, id);
CREATE UNIQUE INDEX session_key ON session (owner, key) WHERE key IS NOT NULL;
CREATE INDEX session_time ON session (owner, archived, order_at, id);
CREATE INDEX session_cwd ON session (owner, cwd, archived, order_at, id) WHERE cwd IS NOT NULL;
CREATE INDEX session_agent ON session (owner, agent_id, archived, order_at, id) WHERE agent_id IS NOT NULL;
CREATE INDEX session_channel ON session (owner, channel, archived, order_at, id) WHERE channel IS NOT NULL;
CREATE INDEX session_source ON session (owner, source, archived, order_at, id) WHERE source IS NOT NULL;
CREATE INDEX session_status ON session (owner, status, archived, order_at, id) WHERE status <> 'idle';
CREATE INDEX session_pinned ON session (owner, archived, order_at, id) WHERE pinned = 1;
CREATE INDEX session_hot ON session (owner) WHERE hot = 1;
CREATE INDEX session_ahead ON session (owner) WHERE active_at < max(updated_at, created_at);
CREATE INDEX session_change ON session (owner, change);
CREATE INDEX session_title ON session (title_number) WHERE title_number IS NOT NULL;

-- Repeats what lists by tag are ordered by.
CREATE TABLE tag (
    owner    INTEGER NOT NULL,
    tag      TEXT NOT NULL,
    archived INTEGER NOT NULL,
    order_at INTEGER NOT NULL,
    id       TEXT NOT NULL,
    session  INTEGER NOT NULL,
    PRIMARY KEY (owner, tag, archived, order_at, id)
) WITHOUT ROWID;
CREATE INDEX tag_session ON tag (session);

-- An entry's key is log << 24 | seq: the entries of a log lie together and a span is one range.
-- number is its document in the search index, NULL once it is erased; tokens, errors, cost and bytes are running sums.
CREATE TABLE entry (
    pos     INTEGER PRIMARY KEY,
    owner   INTEGER NOT NULL,
    number  INTEGER,
    id      TEXT NOT NULL,
    tokens  INTEGER NOT NULL,
    errors  INTEGER NOT NULL,
    cost    INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    payload BLOB NOT NULL
);
CREATE UNIQUE INDEX entry_id ON entry (id, pos >> 24);
CREATE UNIQUE INDEX entry_number ON entry (number) WHERE number IS NOT NULL;

-- name is '' for the present spans, or a checkpoint's id; last is NULL while the span is open.
CREATE TABLE span (
    session INTEGER NOT NULL,
    name    TEXT NOT NULL,
    ord     INTEGER NOT NULL,
    log     INTEGER NOT NULL,
    first   INTEGER NOT NULL,
    last    INTEGER,
    kind    TEXT NOT NULL,
    expands TEXT,
    PRIMARY KEY (session, name, ord)
) WITHOUT ROWID;
CREATE INDEX span_log ON span (log, session);

CREATE TABLE checkpoint (
    session       INTEGER NOT NULL,
    ord           INTEGER NOT NULL,
    id            TEXT NOT NULL,
    at            INTEGER NOT NULL,
    reason        TEXT NOT NULL,
    message_count INTEGER NOT NULL,
    token_count   INTEGER,
    PRIMARY KEY (session, ord)
) WITHOUT ROWID;

CREATE TABLE tombstone (
    owner   INTEGER NOT NULL,
    id      TEXT NOT NULL,
    session INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    change  INTEGER NOT NULL,
    PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX tombstone_change ON tombstone (owner, change);

-- Logs that may hold entries which nothing reaches any more.
CREATE TABLE garbage (
    log INTEGER PRIMARY KEY
);

-- Documents that the search index has to drop.
CREATE TABLE unindex (
    number INTEGER PRIMARY KEY
);

CREATE TABLE memo (
    owner  INTEGER NOT NULL,
    method TEXT NOT NULL,
    key    TEXT NOT NULL,
    digest BLOB NOT NULL,
    answer BLOB NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (owner, method, key)
) WITHOUT ROWID;
CREATE INDEX memo_at ON memo (at);

CREATE TABLE live (
    session INTEGER PRIMARY KEY,
    data    BLOB NOT NULL
);

CREATE TABLE fact (
    owner   INTEGER NOT NULL,
    id      TEXT NOT NULL,
    session TEXT,
    at      INTEGER NOT NULL,
    body    BLOB NOT NULL,
    PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX fact_session ON fact (owner, session, at);

CREATE TABLE raw_copy (
    session INTEGER NOT NULL,
    name    TEXT NOT NULL,
    digest  BLOB NOT NULL,
    PRIMARY KEY (session, name)
) WITHOUT ROWID;
CREATE INDEX raw_copy_digest ON raw_copy (digest);

-- Content-addressed and compressed, so that the same file is kept once.
CREATE TABLE raw_blob (
    digest BLOB PRIMARY KEY,
    data   BLOB NOT NULL
);

-- For people with an SQL shell: the same sessions as two plain tables, read-only.
CREATE VIEW sessions AS
SELECT
    coalesce(s.key, s.id) AS session_key,
    (
        SELECT json_group_array(json(CAST(e.payload AS TEXT)) ORDER BY p.ord, e.pos)
        FROM span AS p
        JOIN entry AS e
            ON e.pos BETWEEN (p.log << 24 | p.first) AND (p.log << 24 | coalesce(p.last, s.head))
        WHERE p.session = s.num AND p.name = ''
    ) AS messages,
    s.created_at,
    s.updated_at,
    s.message_count,
    s.token_count
FROM session AS s;

CREATE VIEW session_metadata AS
SELECT coalesce(key, id) AS session_key, agent_id, channel, last_compaction
FROM session;

-- Every key leads with the owner, so that the tables can be partitioned by hash of it one day.
-- Text that PostgreSQL refuses (NUL, lone surrogates) is escaped by the program; see texts.py.

CREATE TABLE schema_migration (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE store_meta (
    name  text PRIMARY KEY,
    value bytea NOT NULL
);

-- The number of each owner's newest change. Updated as the last lock of a transaction, and held until its end:
-- so numbers become visible in their own order.
CREATE TABLE owner (
    owner  text COLLATE "C" PRIMARY KEY,
    change bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE SEQUENCE session_num;
CREATE SEQUENCE document_number;

CREATE TABLE session (
    owner                  text COLLATE "C" NOT NULL,
    id                     text COLLATE "C" NOT NULL,
    num                    bigint NOT NULL,
    revision               bigint NOT NULL,
    created_at             bigint NOT NULL,
    updated_at             bigint NOT NULL,
    cwd                    text COLLATE "C",
    additional_directories text,
    title                  text,
    title_by               text,
    earlier_titles         text,
    tags                   text,
    status                 text NOT NULL,
    archived               boolean NOT NULL,
    pinned                 boolean NOT NULL,
    key                    text COLLATE "C",
    agent_id               text COLLATE "C",
    channel                text COLLATE "C",
    identity               text,
    message_count          bigint NOT NULL,
    token_count            bigint,
    error_count            bigint NOT NULL,
    cost                   double precision,
    bytes                  bigint NOT NULL,
    last_compaction        bigint,
    parent                 text,
    parent_entry           text,
    source                 text COLLATE "C",
    read_at                bigint,
    meta                   text,
    order_at               bigint NOT NULL,
    head                   bigint NOT NULL,
    total_tokens           bigint NOT NULL,
    total_errors           bigint NOT NULL,
    total_cost             bigint NOT NULL,
    total_bytes            bigint NOT NULL,
    lease_holder           text,
    lease_fence            bigint,
    lease_acquired_at      bigint,
    lease_expires_at       bigint,
    change                 bigint NOT NULL,
    change_kind            text NOT NULL,
    CONSTRAINT session_id PRIMARY KEY (owner, id)
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);

CREATE UNIQUE INDEX session_num_index ON session (owner, num);
CREATE UNIQUE INDEX session_key ON session (owner, key) WHERE key IS NOT NULL;
CREATE INDEX session_change ON session (owner, change);
CREATE INDEX session_list ON session (owner, archived, order_at DESC, id DESC);
-- A path may be longer than an index entry can be.
CREATE INDEX session_cwd ON session (owner, hashtextextended(cwd, 0), archived, order_at DESC, id DESC)
    WHERE cwd IS NOT NULL;
CREATE INDEX session_agent ON session (owner, agent_id, archived, order_at DESC, id DESC)
    WHERE agent_id IS NOT NULL;
CREATE INDEX session_channel ON session (owner, channel, archived, order_at DESC, id DESC)
    WHERE channel IS NOT NULL;
CREATE INDEX session_source ON session (owner, source, archived, order_at DESC, id DESC)
    WHERE source IS NOT NULL;
CREATE INDEX session_status ON session (owner, status, archived, order_at DESC, id DESC)
    WHERE status <> 'idle';
CREATE INDEX session_pinned ON session (owner, archived, order_at DESC, id DESC)
    WHERE pinned;
-- Few: sessions with stamps from the future, which stand lower in a list than their time says.
CREATE INDEX session_ahead ON session (owner, order_at DESC, id DESC)
    WHERE updated_at > order_at;

-- Derived from session.tags; carries what a list is ordered by, so that a tag can lead a list.
CREATE TABLE tag (
    owner    text COLLATE "C" NOT NULL,
    id       text COLLATE "C" NOT NULL,
    tag      text COLLATE "C" NOT NULL,
    archived boolean NOT NULL,
    order_at bigint NOT NULL,
    PRIMARY KEY (owner, id, tag)
);

CREATE INDEX tag_list ON tag (owner, tag, archived, order_at DESC, id DESC);

-- The titles of a session as a document of the search. Not in `session`, whose every append would index them anew.
CREATE TABLE title (
    owner  text COLLATE "C" NOT NULL,
    num    bigint NOT NULL,
    number bigint NOT NULL,
    text   text NOT NULL,
    words  tsvector NOT NULL,
    PRIMARY KEY (owner, num)
);

CREATE INDEX title_number ON title (owner, number);
CREATE INDEX title_words ON title USING gin (words) WITH (gin_pending_list_limit = 1024);

CREATE TABLE entry (
    owner        text COLLATE "C" NOT NULL,
    log          bigint NOT NULL,
    seq          bigint NOT NULL,
    id           text COLLATE "C" NOT NULL,
    role         text NOT NULL,
    number       bigint,
    total_tokens bigint NOT NULL,
    total_errors bigint NOT NULL,
    total_cost   bigint NOT NULL,
    total_bytes  bigint NOT NULL,
    payload      bytea NOT NULL,
    words        tsvector,
    CONSTRAINT entry_place PRIMARY KEY (owner, log, seq),
    CONSTRAINT entry_id UNIQUE (owner, log, id)
);

-- A history reads payloads only: words are what is moved out of the way first.
ALTER TABLE entry ALTER COLUMN payload SET STORAGE MAIN;
-- No number: the entry was erased and is no document any more.
CREATE INDEX entry_number ON entry (owner, number) WHERE number IS NOT NULL;
CREATE INDEX entry_words ON entry USING gin (words) WITH (gin_pending_list_limit = 1024);

-- Running sums at the last of some removed entries: counting what follows them needs it.
CREATE TABLE removed_sums (
    owner        text COLLATE "C" NOT NULL,
    log          bigint NOT NULL,
    seq          bigint NOT NULL,
    total_tokens bigint NOT NULL,
    total_errors bigint NOT NULL,
    total_cost   bigint NOT NULL,
    total_bytes  bigint NOT NULL,
    PRIMARY KEY (owner, log, seq)
);

CREATE TABLE span (
    owner     text COLLATE "C" NOT NULL,
    num       bigint NOT NULL,
    name      text COLLATE "C" NOT NULL,
    ordinal   integer NOT NULL,
    log       bigint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq  bigint,
    kind      text NOT NULL,
    expands   text,
    PRIMARY KEY (owner, num, name, ordinal)
);

CREATE INDEX span_log ON span (owner, log);

CREATE TABLE checkpoint (
    owner         text COLLATE "C" NOT NULL,
    num           bigint NOT NULL,
    id            text COLLATE "C" NOT NULL,
    made          bigint GENERATED ALWAYS AS IDENTITY,
    at            bigint NOT NULL,
    reason        text NOT NULL,
    message_count bigint NOT NULL,
    token_count   bigint,
    PRIMARY KEY (owner, num, id)
);

CREATE TABLE tombstone (
    owner  text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL,
    num    bigint NOT NULL,
    at     bigint NOT NULL,
    change bigint NOT NULL,
    PRIMARY KEY (owner, id)
);

CREATE INDEX tombstone_change ON tombstone (owner, change);

-- Logs that may hold entries which nothing reaches any more.
CREATE TABLE garbage (
    owner text COLLATE "C" NOT NULL,
    log   bigint NOT NULL,
    PRIMARY KEY (owner, log)
);

CREATE TABLE memo (
    owner  text COLLATE "C" NOT NULL,
    method text COLLATE "C" NOT NULL,
    key    text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    answer bytea NOT NULL,
    at     bigint NOT NULL,
    CONSTRAINT memo_key PRIMARY KEY (owner, method, key)
);

CREATE INDEX memo_at ON memo (at);

CREATE TABLE live (
    owner text COLLATE "C" NOT NULL,
    num   bigint NOT NULL,
    data  bytea NOT NULL,
    PRIMARY KEY (owner, num)
) WITH (fillfactor = 50);

CREATE TABLE fact (
    owner   text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    at      bigint NOT NULL,
    text    text NOT NULL,
    kind    text NOT NULL,
    session text COLLATE "C",
    entries text NOT NULL,
    PRIMARY KEY (owner, id)
);

CREATE INDEX fact_session ON fact (owner, session);

CREATE TABLE raw_copy (
    owner text COLLATE "C" NOT NULL,
    num   bigint NOT NULL,
    name  text COLLATE "C" NOT NULL,
    data  bytea NOT NULL,
    PRIMARY KEY (owner, num, name)
);

-- A document's words, and the blocks of documents it stands among, of 2^11, 2^14, 2^17 and 2^20: so a search can take
-- the newest ones first.
CREATE FUNCTION document_words(number bigint, mark text, words text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN array_to_tsvector(ARRAY[
        mark || 'a' || (number >> 11), mark || 'b' || (number >> 14),
        mark || 'c' || (number >> 17), mark || 'd' || (number >> 20)
    ]) || words::tsvector;

-- For people and programs that read the tables with SQL: one row for each session, as simple as can be.
CREATE VIEW sessions AS
SELECT coalesce(s.key, s.id) AS session_key,
       coalesce(
           (SELECT json_agg(convert_from(e.payload, 'UTF8')::json ORDER BY p.ordinal, e.seq)
              FROM span p
              JOIN entry e ON e.owner = p.owner AND e.log = p.log
                          AND e.seq BETWEEN p.first_seq AND coalesce(p.last_seq, s.head)
             WHERE p.owner = s.owner AND p.num = s.num AND p.name = ''),
           '[]'::json
       ) AS messages,
       s.created_at,
       s.updated_at,
       s.message_count,
       s.token_count
  FROM session s;

CREATE VIEW session_metadata AS
SELECT coalesce(key, id) AS session_key, agent_id, channel, last_compaction
  FROM session;

-- The secret of a token is not here: digest is its SHA-256. scopes are separated by spaces.
CREATE TABLE token (
    id         TEXT PRIMARY KEY,
    digest     BLOB NOT NULL UNIQUE,
    owner      INTEGER NOT NULL,
    scopes     TEXT NOT NULL,
    role       TEXT NOT NULL,
    label      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
);
-- Revoked ones stay, so that they can be counted.
CREATE INDEX token_revoked ON token (revoked_at) WHERE revoked_at IS NOT NULL;

-- Accounts of people who are known to be the same as the canonical one.
CREATE TABLE identity_link (
    owner             INTEGER NOT NULL,
    channel           TEXT NOT NULL,
    id                TEXT NOT NULL,
    canonical_channel TEXT NOT NULL,
    canonical_id      TEXT NOT NULL,
    PRIMARY KEY (owner, channel, id)
) WITHOUT ROWID;
CREATE INDEX identity_link_canonical ON identity_link (owner, canonical_channel, canonical_id);

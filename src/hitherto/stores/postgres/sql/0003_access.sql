-- The secret of a token is not here: digest is its SHA-256. scopes are separated by spaces.
-- Its key is not led by the owner: who the owner is, is what a token is asked.
CREATE TABLE token (
    id         text COLLATE "C" PRIMARY KEY,
    digest     bytea NOT NULL UNIQUE,
    owner      text COLLATE "C" NOT NULL,
    scopes     text NOT NULL,
    role       text NOT NULL,
    label      text NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint
);

CREATE INDEX token_made ON token (created_at, id);
CREATE INDEX token_owner ON token (owner, created_at, id);
-- Revoked ones stay, so that they can be counted.
CREATE INDEX token_revoked ON token (revoked_at) WHERE revoked_at IS NOT NULL;

-- Accounts of people who are known to be the same as the canonical one.
CREATE TABLE identity_link (
    owner             text COLLATE "C" NOT NULL,
    channel           text COLLATE "C" NOT NULL,
    id                text COLLATE "C" NOT NULL,
    canonical_channel text COLLATE "C" NOT NULL,
    canonical_id      text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, channel, id)
);

CREATE INDEX identity_link_canonical ON identity_link (owner, canonical_channel, canonical_id, channel, id);

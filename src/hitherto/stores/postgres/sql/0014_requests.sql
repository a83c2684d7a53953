-- What each request to a model has used; derived from `entry`, in the background. `log` and `seq` are the place of the entry
-- with the answer. `key` is the same for the same request in forks, copies and mirrors. cost is in millionths of a dollar,
-- NULL if not known.
CREATE TABLE request (
    owner       text COLLATE "C" NOT NULL,
    log         bigint NOT NULL,
    seq         bigint NOT NULL,
    at          bigint NOT NULL,
    model       text COLLATE "C" NOT NULL,
    key         bigint NOT NULL,
    input       bigint NOT NULL,
    output      bigint NOT NULL,
    cache_read  bigint NOT NULL,
    cache_write bigint NOT NULL,
    cost        bigint,
    reported    boolean NOT NULL,
    PRIMARY KEY (owner, log, seq)
);
CREATE INDEX request_at ON request (owner, at);

-- Up to where the requests of a log are counted.
CREATE TABLE counted (
    owner text COLLATE "C" NOT NULL,
    log   bigint NOT NULL,
    head  bigint NOT NULL,
    PRIMARY KEY (owner, log)
);

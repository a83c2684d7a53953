-- Logs that nothing explains: no session, no span, no deletion. They stay where they are; nobody removes them, and
-- `hitherto doctor --quarantine` shows them and brings them back.
CREATE TABLE quarantine (
    owner text COLLATE "C" NOT NULL,
    log   bigint NOT NULL,
    at    bigint NOT NULL,
    why   text NOT NULL,
    PRIMARY KEY (owner, log)
);

-- What the last check has found. While there is a row, nothing is collected.
CREATE TABLE known_problems (
    one      integer PRIMARY KEY CHECK (one = 1),
    problems text NOT NULL
);

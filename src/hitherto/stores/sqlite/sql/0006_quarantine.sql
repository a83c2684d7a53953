-- Logs that nothing explains: no session, no span, no deletion. They stay where they are; nobody removes them, and
-- `hitherto doctor --quarantine` shows them and brings them back.
CREATE TABLE quarantine (
    log INTEGER PRIMARY KEY,
    at  INTEGER NOT NULL,
    why TEXT NOT NULL
);

-- What the last check has found. While there is a row, nothing is collected.
CREATE TABLE known_problems (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    problems TEXT NOT NULL
);

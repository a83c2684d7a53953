-- What facts are found by. `said` is NULL, and there are no marks, for what was remembered before there were any: it is
-- always looked at.
ALTER TABLE fact
    ADD COLUMN agent text,
    ADD COLUMN person text,
    ADD COLUMN subject text,
    ADD COLUMN outdone_by text,
    ADD COLUMN said text;
UPDATE fact SET
    agent = more::json ->> 'agent_id',
    person = more::json ->> 'identity_id',
    subject = more::json ->> 'subject',
    outdone_by = more::json ->> 'invalidated_by';
CREATE INDEX fact_newest ON fact (owner, at, id);
CREATE INDEX fact_person ON fact (owner, person, at, id) WHERE person IS NOT NULL;
CREATE INDEX fact_said ON fact (owner, said);
CREATE INDEX fact_unmarked ON fact (owner, at, id) WHERE said IS NULL;
CREATE INDEX fact_subject ON fact (owner, subject) WHERE subject IS NOT NULL;
CREATE INDEX fact_outdone ON fact (owner, outdone_by) WHERE outdone_by IS NOT NULL;
CREATE TABLE fact_mark (
    owner text NOT NULL,
    mark  text NOT NULL,
    at    bigint NOT NULL,
    id    text NOT NULL,
    PRIMARY KEY (owner, mark, at, id),
    FOREIGN KEY (owner, id) REFERENCES fact (owner, id) ON DELETE CASCADE
);
CREATE INDEX fact_mark_id ON fact_mark (owner, id);

-- Who reads of a deletion knows the session by its key.
ALTER TABLE tombstone ADD COLUMN key text;

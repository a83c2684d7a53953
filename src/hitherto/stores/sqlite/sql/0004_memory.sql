-- What facts are found by. `said` is NULL, and there are no marks, for what was remembered before there were any: it is
-- always looked at.
ALTER TABLE fact ADD COLUMN agent TEXT;
ALTER TABLE fact ADD COLUMN person TEXT;
ALTER TABLE fact ADD COLUMN subject TEXT;
ALTER TABLE fact ADD COLUMN outdone_by TEXT;
ALTER TABLE fact ADD COLUMN said TEXT;
UPDATE fact SET
    agent = json_extract(CAST(body AS TEXT), '$.agent_id'),
    person = json_extract(CAST(body AS TEXT), '$.identity_id'),
    subject = json_extract(CAST(body AS TEXT), '$.subject'),
    outdone_by = json_extract(CAST(body AS TEXT), '$.invalidated_by');
CREATE INDEX fact_newest ON fact (owner, at, id);
CREATE INDEX fact_person ON fact (owner, person, at, id) WHERE person IS NOT NULL;
CREATE INDEX fact_said ON fact (owner, said);
CREATE INDEX fact_unmarked ON fact (owner, at, id) WHERE said IS NULL;
CREATE INDEX fact_subject ON fact (owner, subject) WHERE subject IS NOT NULL;
CREATE INDEX fact_outdone ON fact (owner, outdone_by) WHERE outdone_by IS NOT NULL;
CREATE TABLE fact_mark (
    owner INTEGER NOT NULL,
    mark  TEXT NOT NULL,
    at    INTEGER NOT NULL,
    id    TEXT NOT NULL,
    PRIMARY KEY (owner, mark, at, id)
) WITHOUT ROWID;
CREATE INDEX fact_mark_id ON fact_mark (owner, id);
CREATE TRIGGER fact_gone AFTER DELETE ON fact BEGIN
    DELETE FROM fact_mark WHERE owner = old.owner AND id = old.id;
END;

-- Who reads of a deletion knows the session by its key.
ALTER TABLE tombstone ADD COLUMN key TEXT;

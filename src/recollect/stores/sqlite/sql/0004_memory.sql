-- What facts are found by. `words` and `said` are NULL for what was remembered before there were any: it is always looked at.
ALTER TABLE fact ADD COLUMN agent TEXT;
ALTER TABLE fact ADD COLUMN person TEXT;
ALTER TABLE fact ADD COLUMN subject TEXT;
ALTER TABLE fact ADD COLUMN outdone_by TEXT;
ALTER TABLE fact ADD COLUMN said TEXT;
ALTER TABLE fact ADD COLUMN words TEXT;
UPDATE fact SET
    agent = json_extract(CAST(body AS TEXT), '$.agent_id'),
    person = json_extract(CAST(body AS TEXT), '$.identity_id'),
    subject = json_extract(CAST(body AS TEXT), '$.subject'),
    outdone_by = json_extract(CAST(body AS TEXT), '$.invalidated_by');
CREATE INDEX fact_newest ON fact (owner, at, id);
CREATE INDEX fact_person ON fact (owner, person, at, id) WHERE person IS NOT NULL;
CREATE INDEX fact_said ON fact (owner, said);
CREATE INDEX fact_subject ON fact (owner, subject) WHERE subject IS NOT NULL;
CREATE INDEX fact_outdone ON fact (owner, outdone_by) WHERE outdone_by IS NOT NULL;

-- Who reads of a deletion knows the session by its key.
ALTER TABLE tombstone ADD COLUMN key TEXT;

ALTER TABLE session ADD COLUMN earlier_cwds BLOB;
ALTER TABLE session ADD COLUMN project TEXT;
ALTER TABLE session ADD COLUMN branch TEXT;
UPDATE session SET branch = json_extract(CAST(meta AS TEXT), '$.git_branch')
WHERE source = 'claude' AND json_type(CAST(meta AS TEXT), '$.git_branch') = 'text';
CREATE INDEX session_project ON session (owner, project, archived, order_at, id) WHERE project IS NOT NULL;
-- Few, once their folders have been looked at.
CREATE INDEX session_placeless ON session (owner) WHERE project IS NULL AND cwd IS NOT NULL;

-- An erased entry keeps its number: it is no document any more, but what it adds to its day stays.
ALTER TABLE entry ADD COLUMN erased INTEGER;

-- How many sessions have something in common; derived from `session`.
CREATE TABLE facet (
    owner    INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    value    TEXT NOT NULL,
    sessions INTEGER NOT NULL,
    PRIMARY KEY (owner, kind, value)
) WITHOUT ROWID;
CREATE INDEX facet_most ON facet (owner, kind, sessions DESC, value);
INSERT INTO facet (owner, kind, value, sessions)
SELECT owner, 'count', 'total', count(*) FROM session WHERE archived = 0 GROUP BY owner
UNION ALL
SELECT owner, 'count', 'archived', count(*) FROM session WHERE archived = 1 GROUP BY owner
UNION ALL
SELECT owner, 'count', 'pinned', count(*) FROM session WHERE archived = 0 AND pinned = 1 GROUP BY owner
UNION ALL
SELECT owner, 'agent', coalesce(source, agent_id), count(*) FROM session
WHERE archived = 0 AND coalesce(source, agent_id) IS NOT NULL GROUP BY owner, coalesce(source, agent_id)
UNION ALL
SELECT owner, 'source', source, count(*) FROM session WHERE archived = 0 AND source IS NOT NULL GROUP BY owner, source
UNION ALL
SELECT owner, 'tag', tag, count(*) FROM tag WHERE archived = 0 GROUP BY owner, tag;

-- Sessions whose days the search file must tell anew: their agent or project has changed, or they are gone; with
-- recount, entries of their log are gone.
CREATE TABLE restate (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    recount INTEGER NOT NULL
);

-- Under which project the repository goes that begins with this commit.
CREATE TABLE root (
    owner   INTEGER NOT NULL,
    root    TEXT NOT NULL,
    project TEXT NOT NULL,
    PRIMARY KEY (owner, root)
) WITHOUT ROWID;

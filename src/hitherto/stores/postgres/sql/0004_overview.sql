ALTER TABLE session
    ADD COLUMN earlier_cwds text,
    ADD COLUMN project text COLLATE "C",
    ADD COLUMN branch text COLLATE "C";
UPDATE session SET branch = substring(meta FROM '"git_branch":"([^"\\]+)"')
WHERE source = 'claude' AND meta LIKE '%"git_branch":"%';

CREATE INDEX session_project ON session (owner, project, archived, order_at DESC, id DESC)
    WHERE project IS NOT NULL;
-- Few, once their folders have been looked at.
CREATE INDEX session_placeless ON session (owner, num) WHERE project IS NULL AND cwd IS NOT NULL;

-- How many sessions have something in common; derived from `session`. Changed behind the owner's lock only.
CREATE TABLE facet (
    owner    text COLLATE "C" NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    value    text COLLATE "C" NOT NULL,
    sessions bigint NOT NULL,
    PRIMARY KEY (owner, kind, value)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX facet_most ON facet (owner, kind, sessions DESC, value);

-- Tags with characters that JSON escapes are those that PostgreSQL may refuse.
CREATE VIEW facet_as_it_should_be AS
SELECT owner, kind, value, count(*) AS sessions FROM (
    SELECT owner, 'count' AS kind, CASE WHEN archived THEN 'archived' ELSE 'total' END AS value FROM session
    UNION ALL SELECT owner, 'count', 'pinned' FROM session WHERE pinned AND NOT archived
    UNION ALL SELECT owner, 'agent', coalesce(source, agent_id) FROM session WHERE NOT archived
    UNION ALL SELECT owner, 'project', project FROM session WHERE NOT archived
    UNION ALL SELECT owner, 'source', source FROM session WHERE NOT archived
    UNION ALL SELECT owner, 'tag', tag FROM session, json_array_elements_text(tags::json) tag
    WHERE NOT archived AND strpos(tags, chr(92)) = 0
    UNION ALL SELECT t.owner, 'tag', t.tag FROM session s JOIN tag t ON t.owner = s.owner AND t.id = s.id
    WHERE NOT s.archived AND strpos(s.tags, chr(92)) > 0
) marks WHERE value IS NOT NULL GROUP BY owner, kind, value;

LOCK TABLE session, entry IN SHARE MODE;
INSERT INTO facet (owner, kind, value, sessions) SELECT owner, kind, value, sessions FROM facet_as_it_should_be;

-- What was said in a session's own log on which day (days since 1970, in UTC) by which model; derived from `entry`.
CREATE TABLE day (
    owner    text COLLATE "C" NOT NULL,
    num      bigint NOT NULL,
    day      integer NOT NULL,
    model    text COLLATE "C" NOT NULL,
    messages bigint NOT NULL,
    tokens   bigint NOT NULL,
    cost     bigint NOT NULL,
    PRIMARY KEY (owner, num, day, model)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX day_sessions ON day (owner, day, num);

-- Under which project the repository goes that begins with this commit.
CREATE TABLE root (
    owner   text COLLATE "C" NOT NULL,
    root    text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, root)
);

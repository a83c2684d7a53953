-- Writers of one owner no longer wait for each other at one row. The changes of an owner are numbered in 64 lanes, each for
-- itself; a session is in the lane that its id gives: see `rows.lane_of`. Programs that know one row of numbers only would
-- give numbers that nobody sees.
SELECT shut_out_writers(11);

ALTER TABLE session ADD COLUMN lane smallint;
UPDATE session SET lane = get_byte(sha256(convert_to(id, 'UTF8')), 0) & 63;
ALTER TABLE session ALTER COLUMN lane SET NOT NULL;
DROP INDEX session_change;
CREATE INDEX session_lane ON session (owner, lane, change);
ALTER TABLE tombstone ADD COLUMN lane smallint;
UPDATE tombstone SET lane = get_byte(sha256(convert_to(id, 'UTF8')), 0) & 63;
ALTER TABLE tombstone ALTER COLUMN lane SET NOT NULL;
DROP INDEX tombstone_change;
CREATE INDEX tombstone_lane ON tombstone (owner, lane, change);

-- The number of the newest change in each lane. Updated as the last lock of a transaction, and held until its end: so the
-- numbers of a lane become visible in their own order. The table `owner` stays as it was, for older programs that read.
CREATE TABLE lane (
    owner  text COLLATE "C" NOT NULL,
    lane   smallint NOT NULL,
    change bigint NOT NULL,
    PRIMARY KEY (owner, lane)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
INSERT INTO lane (owner, lane, change)
SELECT owner, lane, max(change) FROM (
    SELECT owner, lane, change FROM session UNION ALL SELECT owner, lane, change FROM tombstone
) numbered GROUP BY owner, lane;

-- How many sessions of a lane have something in common; derived from `session`. Changed behind the lane's lock only.
DROP VIEW facet_as_it_should_be;
DROP TABLE facet;
CREATE TABLE facet (
    owner    text COLLATE "C" NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    value    text COLLATE "C" NOT NULL,
    lane     smallint NOT NULL,
    sessions bigint NOT NULL,
    PRIMARY KEY (owner, kind, value, lane)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Tags with characters that JSON escapes are those that PostgreSQL may refuse.
CREATE VIEW facet_as_it_should_be AS
SELECT owner, kind, value, lane, count(*) AS sessions FROM (
    SELECT owner, lane, 'count' AS kind, CASE WHEN archived THEN 'archived' ELSE 'total' END AS value FROM session
    UNION ALL SELECT owner, lane, 'count', 'pinned' FROM session WHERE pinned AND NOT archived
    UNION ALL SELECT owner, lane, 'agent', coalesce(source, agent_id) FROM session WHERE NOT archived
    UNION ALL SELECT owner, lane, 'project', project FROM session WHERE NOT archived
    UNION ALL SELECT owner, lane, 'source', source FROM session WHERE NOT archived
    UNION ALL SELECT owner, lane, 'tag', tag FROM session, json_array_elements_text(tags::json) tag
    WHERE NOT archived AND strpos(tags, chr(92)) = 0
    UNION ALL SELECT t.owner, s.lane, 'tag', t.tag FROM session s JOIN tag t ON t.owner = s.owner AND t.id = s.id
    WHERE NOT s.archived AND strpos(s.tags, chr(92)) > 0
) marks WHERE value IS NOT NULL GROUP BY owner, kind, value, lane;

INSERT INTO facet (owner, kind, value, lane, sessions)
SELECT owner, kind, value, lane, sessions FROM facet_as_it_should_be;

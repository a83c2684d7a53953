-- The view in words that SQLite 3.40 knows too: one that an older SQLite cannot read keeps it from opening the whole file.
DROP VIEW sessions;
CREATE VIEW sessions AS
SELECT
    coalesce(s.key, s.id) AS session_key,
    (
        SELECT json_group_array(json(CAST(m.payload AS TEXT)))
        FROM (
            SELECT e.payload
            FROM span AS p
            JOIN entry AS e
                ON e.pos BETWEEN (p.log << 24 | p.first) AND (p.log << 24 | coalesce(p.last, s.head))
            WHERE p.session = s.num AND p.name = ''
            ORDER BY p.ord, e.pos
        ) AS m
    ) AS messages,
    s.created_at,
    s.updated_at,
    s.message_count,
    s.token_count
FROM session AS s;

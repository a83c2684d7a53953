-- The oldest schema whose programs may still write; every program looks before it writes. A step beside which older programs
-- must not write begins with `SELECT shut_out_writers(its number)`; one that only adds leaves it alone.
INSERT INTO store_meta (name, value) VALUES ('oldest_writer', '8');

-- The first statement of each transaction that writes. The lock lets no step that shuts out writers come in between.
CREATE FUNCTION check_writer(known integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    oldest integer;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(8243104059879449956);
    SELECT convert_from(value, 'UTF8')::integer INTO oldest FROM store_meta WHERE name = 'oldest_writer';
    IF known < oldest THEN
        RAISE EXCEPTION 'schema % may no longer write', known
            USING ERRCODE = 'HT001', DETAIL = (SELECT max(version) FROM schema_migration) || ' ' || known;
    END IF;
END
$$;

CREATE FUNCTION shut_out_writers(older_than integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(8243104059879449956);
    UPDATE store_meta SET value = convert_to(older_than::text, 'UTF8') WHERE name = 'oldest_writer';
END
$$;

-- Programs of earlier schemas do not look: they know no erasures and no quarantine. What they write by and what they collect
-- by has other names from here on, so that they can only read.
LOCK TABLE session, garbage IN ACCESS EXCLUSIVE MODE;
ALTER TABLE session RENAME COLUMN change_kind TO kind_of_change;
ALTER TABLE garbage RENAME COLUMN log TO unreached;

-- CRC-32 of what was written together with whose it is and where it belongs, so that a right row in a wrong place is noticed
-- too. NULL: not known, as for all that was written before, or by an older program beside a newer one. That of a session has
-- some bits of its revision and its newest change above it, that of a lease some of its fence and its beginning: so what an
-- older program has written since is known from what was altered.
ALTER TABLE session ADD COLUMN crc bigint, ADD COLUMN lease_crc bigint;
-- crc is of the payload, row_crc of the columns beside it.
ALTER TABLE entry ADD COLUMN crc bigint, ADD COLUMN row_crc bigint;
ALTER TABLE span ADD COLUMN crc bigint;
ALTER TABLE checkpoint ADD COLUMN crc bigint;
ALTER TABLE fact ADD COLUMN crc bigint;
ALTER TABLE token ADD COLUMN crc bigint;
-- digest is the SHA-256 of data.
ALTER TABLE raw_copy ADD COLUMN crc bigint, ADD COLUMN digest bytea;

-- An older program puts a row in the place of another by INSERT … ON CONFLICT, which would leave the checksum of the other.
CREATE FUNCTION forget_replaced_fact() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM fact WHERE owner = NEW.owner AND id = NEW.id;
    RETURN NEW;
END
$$;
CREATE FUNCTION forget_replaced_raw_copy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM raw_copy WHERE owner = NEW.owner AND num = NEW.num AND name = NEW.name;
    RETURN NEW;
END
$$;
CREATE TRIGGER fact_replaced BEFORE INSERT ON fact
    FOR EACH ROW WHEN (NEW.crc IS NULL) EXECUTE FUNCTION forget_replaced_fact();
CREATE TRIGGER raw_copy_replaced BEFORE INSERT ON raw_copy
    FOR EACH ROW WHEN (NEW.crc IS NULL) EXECUTE FUNCTION forget_replaced_raw_copy();

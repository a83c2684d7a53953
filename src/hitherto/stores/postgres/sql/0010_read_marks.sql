-- CRC-32 of when a session was last read, with whose it is and where it belongs. NULL: not known, or never read.
ALTER TABLE session ADD COLUMN read_crc bigint;

-- An older program beside a newer one writes `read_at` alone, which would leave the checksum of another time.
CREATE FUNCTION forget_read_checksum() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.read_crc := NULL;
    RETURN NEW;
END
$$;
CREATE TRIGGER read_by_older_program BEFORE UPDATE OF read_at ON session
    FOR EACH ROW WHEN (NEW.read_at IS DISTINCT FROM OLD.read_at AND NEW.read_crc IS NOT DISTINCT FROM OLD.read_crc)
    EXECUTE FUNCTION forget_read_checksum();

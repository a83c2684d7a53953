-- CRC-32 of when a session was last read, with whose it is and where it belongs. NULL: not known, or never read.
ALTER TABLE session ADD COLUMN read_crc INTEGER;

-- An older program beside a newer one writes `read_at` alone, which would leave the checksum of another time.
CREATE TRIGGER read_by_older_program AFTER UPDATE OF read_at ON session
WHEN NEW.read_at IS NOT OLD.read_at AND NEW.read_crc IS OLD.read_crc
BEGIN
    UPDATE session SET read_crc = NULL WHERE num = NEW.num;
END;

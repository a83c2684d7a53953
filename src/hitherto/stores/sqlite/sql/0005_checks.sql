-- CRC-32 of what was written, so that what a disk gives back altered is not taken for it. NULL: not known, as for all that
-- was written before; a statement that changes a session past the program must leave it so.
ALTER TABLE session ADD COLUMN crc INTEGER;
ALTER TABLE entry ADD COLUMN crc INTEGER;

-- CRC-32 of what was written together with whose it is and where it belongs, so that a right row in a wrong place is noticed
-- too. NULL: not known, as for all that was written before, or by an older program beside a newer one. `crc` of sessions and
-- entries stays what it was: older programs compare it.
ALTER TABLE session ADD COLUMN place_crc INTEGER;
ALTER TABLE session ADD COLUMN lease_crc INTEGER;
-- place_crc is of the payload, row_crc of the columns beside it.
ALTER TABLE entry ADD COLUMN place_crc INTEGER;
ALTER TABLE entry ADD COLUMN row_crc INTEGER;
ALTER TABLE span ADD COLUMN crc INTEGER;
ALTER TABLE checkpoint ADD COLUMN crc INTEGER;
ALTER TABLE fact ADD COLUMN crc INTEGER;
ALTER TABLE token ADD COLUMN crc INTEGER;
ALTER TABLE raw_copy ADD COLUMN crc INTEGER;

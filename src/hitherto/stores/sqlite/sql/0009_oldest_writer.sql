-- The oldest schema whose programs may still write; every program looks before it writes. A step beside which older programs
-- must not write sets it to its own number; one that only adds leaves it alone.
INSERT INTO store_meta (name, value) VALUES ('oldest_writer', CAST('9' AS BLOB));

-- Programs of earlier schemas do not look: they know no checksums, no erasures and no quarantine. What they write by and what
-- they collect by has other names from here on, so that they can only read.
ALTER TABLE session RENAME COLUMN change_kind TO kind_of_change;
ALTER TABLE garbage RENAME COLUMN log TO unreached;

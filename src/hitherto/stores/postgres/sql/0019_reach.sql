-- What a token is restricted to, as JSON: until when, and to which sessions and methods. The digest of such a token is another
-- than that of its secret alone, so that no older program admits it without them.
ALTER TABLE token ADD COLUMN rule text;
ALTER TABLE token ADD COLUMN rule_crc bigint;
-- When it was last used, about.
ALTER TABLE token ADD COLUMN used_at bigint;
-- How often its secret was replaced.
ALTER TABLE token ADD COLUMN rotations bigint NOT NULL DEFAULT 0;
CREATE INDEX token_rotated ON token (rotations) WHERE rotations > 0;

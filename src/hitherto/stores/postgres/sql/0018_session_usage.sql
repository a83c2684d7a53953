-- What each session has used; derived from `entry`, in the background. `revision` is that of the session when it was counted.
CREATE TABLE session_usage (
    owner    text COLLATE "C" NOT NULL,
    num      bigint NOT NULL,
    revision bigint NOT NULL,
    body     bytea NOT NULL,
    PRIMARY KEY (owner, num)
);

-- It goes with its session, also if a program deletes that which does not know of it.
CREATE FUNCTION forget_session_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM session_usage WHERE owner = OLD.owner AND num = OLD.num;
    RETURN NULL;
END
$$;
CREATE TRIGGER usage_of_deleted_session AFTER DELETE ON session FOR EACH ROW EXECUTE FUNCTION forget_session_usage();

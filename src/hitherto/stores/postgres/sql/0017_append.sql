-- An entry for a session that is as the caller left it, in one trip: what other transactions do by several statements, and with
-- the same locks in the same order. False if the session is not so, if its lease is over and at `assumed_now` was not, or the other
-- way round, or if something waits in its inbox though it `assumes_no_inbox`; then nothing is written. Programs call it by its
-- arguments: a later step that needs others adds a function and leaves this one.
CREATE FUNCTION append_entry(
    writer bigint, its_owner text, its_id text, its_num bigint, its_lane bigint,
    left_revision bigint, left_crc bigint, left_lease_crc bigint, left_read_crc bigint,
    assumed_now bigint, assumes_no_inbox boolean,
    new_revision bigint, new_updated_at bigint, new_order_at bigint, new_head bigint,
    new_tokens bigint, new_errors bigint, new_cost bigint, new_bytes bigint,
    new_message_count bigint, new_token_count bigint, new_error_count bigint, new_session_cost double precision,
    new_session_bytes bigint, new_heard_at bigint, new_heard_revision bigint, new_crc bigint, is_tagged boolean,
    entry_id text, entry_role text, entry_said bigint, entry_payload bytea, entry_mark text, entry_words text,
    entry_crc bigint, entry_row_crc bigint,
    said_on bigint, said_by text, said_messages bigint, said_tokens bigint, said_cost bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
    lease_until bigint;
BEGIN
    PERFORM check_writer(writer::integer);
    SELECT lease_expires_at INTO lease_until FROM session
    WHERE owner = its_owner AND id = its_id AND num = its_num AND revision = left_revision
        AND crc & 281474976710655 = left_crc AND lease_crc IS NOT DISTINCT FROM left_lease_crc
        AND read_crc IS NOT DISTINCT FROM left_read_crc
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF assumed_now IS NOT NULL AND (lease_until > assumed_now) IS DISTINCT FROM
        (lease_until > (extract(epoch FROM clock_timestamp()) * 1000)::bigint) THEN
        RETURN false;
    END IF;
    IF assumes_no_inbox AND EXISTS (SELECT FROM inbox WHERE owner = its_owner AND num = its_num) THEN
        RETURN false;
    END IF;
    number := nextval('document_number');
    INSERT INTO entry (owner, log, seq, id, role, number, said, total_tokens, total_errors, total_cost, total_bytes,
                       payload, words, crc, row_crc)
    VALUES (its_owner, its_num, new_head, entry_id, entry_role, number, entry_said, new_tokens, new_errors, new_cost, new_bytes,
            entry_payload, document_words(number, entry_mark, entry_words), entry_crc, entry_row_crc);
    INSERT INTO day AS d (owner, num, day, model, messages, tokens, cost)
    VALUES (its_owner, its_num, said_on, said_by, said_messages, said_tokens, said_cost)
    ON CONFLICT (owner, num, day, model) DO UPDATE SET
        messages = d.messages + excluded.messages, tokens = d.tokens + excluded.tokens, cost = d.cost + excluded.cost;
    INSERT INTO lane AS l (owner, lane, change) VALUES (its_owner, its_lane, 1)
    ON CONFLICT (owner, lane) DO UPDATE SET change = l.change + 1 RETURNING l.change INTO number;
    UPDATE session SET revision = new_revision, updated_at = new_updated_at, order_at = new_order_at, head = new_head,
        total_tokens = new_tokens, total_errors = new_errors, total_cost = new_cost, total_bytes = new_bytes,
        message_count = new_message_count, token_count = new_token_count, error_count = new_error_count,
        cost = new_session_cost, bytes = new_session_bytes, heard_at = new_heard_at, heard_revision = new_heard_revision,
        kind_of_change = 'append', change = number, crc = new_crc | ((number & 32767) << 48)
    WHERE owner = its_owner AND num = its_num;
    IF is_tagged THEN
        UPDATE tag SET order_at = new_order_at WHERE owner = its_owner AND id = its_id;
    END IF;
    RETURN true;
END
$$;

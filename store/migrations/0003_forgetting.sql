-- Forgetting on request scrubs what quotes a memory: the query service does it, within its app.

GRANT UPDATE ON turn, decision, change TO mnemo_query;
GRANT DELETE ON memory_vector, memory_source, answer TO mnemo_query;

-- A line is walked over what was said again, too.
CREATE INDEX memory_restates ON memory (owner_key, restates) WHERE restates IS NOT NULL;

-- The log of turns keeps what was said as it was said. Two things change it: forgetting, which says so in its
-- transaction (mnemo.forgetting), and a turn that was parked and is sent again, corrected.
CREATE FUNCTION turn_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> 'PARKED' AND current_setting('mnemo.forgetting', true) IS DISTINCT FROM 'on'
        AND (NEW.session, NEW.said_at, NEW.received_at, NEW.messages, NEW.recalled, NEW.metadata)
            IS DISTINCT FROM (OLD.session, OLD.said_at, OLD.received_at, OLD.messages, OLD.recalled, OLD.metadata) THEN
        RAISE EXCEPTION 'the log of turns is immutable';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER turn_stands
    BEFORE UPDATE OF session, said_at, received_at, messages, recalled, metadata ON turn
    FOR EACH ROW EXECUTE FUNCTION turn_stands();

-- Turns past their retention are found by when they came. BRIN: a turn that is stored stays where it is.
CREATE INDEX turn_received ON turn USING brin (received_at);

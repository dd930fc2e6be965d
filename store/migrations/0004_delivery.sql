-- What operating the stream needs: where parked records lie and what was done with them, readings after the first, and
-- which transaction an effect came from. Nothing here reads or writes the rows of a table: its locks are short.

ALTER TABLE parked
    -- Where the record lies on the topic of parked records; NULL: parked before this was kept.
    ADD COLUMN parked_partition integer,
    ADD COLUMN parked_offset bigint,
    -- Of the record, and of all its turns: `turn_id` is the first.
    ADD COLUMN received_at timestamptz,
    ADD COLUMN turn_ids text[] NOT NULL DEFAULT '{}',
    -- Which reading could not be made of it.
    ADD COLUMN run integer NOT NULL DEFAULT 0,
    -- It was put back on its topic, the last time and how often; or given up.
    ADD COLUMN replayed_at timestamptz,
    ADD COLUMN replays integer NOT NULL DEFAULT 0,
    ADD COLUMN dropped_at timestamptz;

-- One effect, one transaction: rows of a turn's effect carry the number of the transaction that wrote its ledger row.
-- NULL: written before this was kept. Two steps, so that no row is rewritten.
ALTER TABLE ledger
    ADD COLUMN tx xid8,
    -- It had been parked before it took effect: not in the order of its offset then.
    ADD COLUMN was_parked boolean NOT NULL DEFAULT false;
ALTER TABLE ledger ALTER COLUMN tx SET DEFAULT pg_current_xact_id();
ALTER TABLE decision ADD COLUMN tx xid8;
ALTER TABLE decision ALTER COLUMN tx SET DEFAULT pg_current_xact_id();
ALTER TABLE change ADD COLUMN tx xid8;
ALTER TABLE change ALTER COLUMN tx SET DEFAULT pg_current_xact_id();

-- A parked turn that takes effect: noted here, so that workers of the version before, which still run beside this
-- schema, note it too.
CREATE FUNCTION ledger_takes_effect() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.tx := pg_current_xact_id();
    NEW.was_parked := true;
    RETURN NEW;
END
$$;
CREATE TRIGGER ledger_takes_effect
    BEFORE UPDATE OF outcome ON ledger
    FOR EACH ROW WHEN (OLD.outcome = 'PARKED' AND NEW.outcome = 'STORED') EXECUTE FUNCTION ledger_takes_effect();

-- Readings of turns after the first, each with a number of its own; 0 is the first reading. Of operators, across apps.
CREATE TABLE run (
    run           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- What it reads again: turns received from … until before …, of one app or owner where they are given.
    received_from timestamptz,
    received_to   timestamptz,
    app           text,
    owner         text,
    turns         bigint NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL DEFAULT now(),
    -- When its last turn was put on the topic; NULL: not yet, or it was broken off.
    published_at  timestamptz
);
ALTER TABLE run ENABLE ROW LEVEL SECURITY;
ALTER TABLE run FORCE ROW LEVEL SECURITY;
CREATE POLICY operator_sees_all ON run TO mnemo_operator, mnemo_timer USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON run TO mnemo_operator, mnemo_timer;

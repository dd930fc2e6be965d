-- What arbitration needs: when a memory was last said, what it says again, how a decision was made, and what was forgotten.

-- The order of the latest statement that said it; NULL: that of the statement its text comes from.
ALTER TABLE memory
    ADD COLUMN last_stated_at timestamptz,
    ADD COLUMN last_received_at timestamptz,
    ADD COLUMN last_offset bigint,
    ADD COLUMN last_index integer,
    -- A memory that said the same, was superseded or retracted, and is said again by this one.
    ADD COLUMN restates uuid;
ALTER TABLE change ADD COLUMN restates uuid;
-- A line is walked both ways: either end may be the one that names the other.
CREATE INDEX memory_supersedes ON memory (owner_key, supersedes) WHERE supersedes IS NOT NULL;
CREATE INDEX memory_superseded_by ON memory (owner_key, superseded_by) WHERE superseded_by IS NOT NULL;

-- How it was arbitrated; NULL where no arbitrator was asked. `model` and what stands beside it tell of the reading.
ALTER TABLE decision
    ADD COLUMN marked boolean NOT NULL DEFAULT false,
    -- What it retired: superseded, retracted, or given an end.
    ADD COLUMN retired uuid[] NOT NULL DEFAULT '{}',
    ADD COLUMN arbitration_model text,
    ADD COLUMN arbitration_prompt_version text,
    ADD COLUMN arbitration_tokens_in integer NOT NULL DEFAULT 0,
    ADD COLUMN arbitration_tokens_out integer NOT NULL DEFAULT 0,
    ADD COLUMN arbitration_latency_seconds double precision NOT NULL DEFAULT 0;

-- The key of the hashes below: an app's own, so that equal texts of two apps have different ones.
ALTER TABLE app ADD COLUMN forget_key bytea NOT NULL
    DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());

-- What stays of what was forgotten on request: it keeps what was received before from coming back.
CREATE TABLE tombstone (
    owner_key       bigint NOT NULL REFERENCES owner ON DELETE CASCADE,
    id              uuid NOT NULL,
    app             text NOT NULL,
    -- Statements received before this stay forgotten.
    received_before timestamptz NOT NULL,
    -- SHA-256 of the app's forget_key and the hash of the normalised text.
    text_hashes     bytea[] NOT NULL,
    -- SHA-256 of the app's forget_key and subject, U+001F, attribute.
    slot_hashes     bytea[] NOT NULL DEFAULT '{}',
    -- The turns that supported it.
    turn_ids        text[] NOT NULL DEFAULT '{}',
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner_key, id)
);
ALTER TABLE tombstone ENABLE ROW LEVEL SECURITY;
ALTER TABLE tombstone FORCE ROW LEVEL SECURITY;
CREATE POLICY app_wall ON tombstone USING (app = current_setting('mnemo.app', true));
CREATE POLICY operator_sees_all ON tombstone TO mnemo_operator, mnemo_timer USING (true);
GRANT SELECT ON tombstone TO mnemo_worker;
GRANT SELECT, INSERT ON tombstone TO mnemo_query;
GRANT SELECT, INSERT, UPDATE, DELETE ON tombstone TO mnemo_timer, mnemo_operator;

-- The store of Mnemostream. Everything of an owner is led by owner_key, a number that stands for (app, owner), so that an
-- owner's rows are neighbours on disk and the store can be spread over machines by that key.
--
-- Two walls keep apps apart: every statement names app and owner, and row-level security compares app with the setting
-- mnemo.app, which is set inside each transaction. Without the setting nothing is visible.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE app (
    app          text PRIMARY KEY CHECK (app ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    time_zone    text NOT NULL DEFAULT 'UTC',
    -- The Postgres text search configuration of the app's memories.
    language     regconfig NOT NULL DEFAULT 'english',
    instructions text,
    categories   jsonb NOT NULL DEFAULT '{}',
    limits       jsonb NOT NULL DEFAULT '{}',
    created_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE owner (
    owner_key  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app        text NOT NULL REFERENCES app,
    owner      text NOT NULL CHECK (char_length(owner) BETWEEN 1 AND 256),
    -- Raised by every change of content or state. Who decided on an older version decides again.
    version    bigint NOT NULL DEFAULT 0,
    -- The last number given out in the change feed.
    seq        bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (app, owner)
) WITH (fillfactor = 70);

-- One row a model that ever wrote vectors here. The thresholds belong to its scale.
CREATE TABLE embedding_model (
    model_key             smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name                  text NOT NULL UNIQUE,
    dimensions            integer NOT NULL CHECK (dimensions BETWEEN 1 AND 1280),
    auto_merge_threshold  real NOT NULL,
    arbitration_threshold real NOT NULL,
    created_at            timestamptz NOT NULL DEFAULT now(),
    CHECK (arbitration_threshold <= auto_merge_threshold)
);

-- The log of turns: what was said, redacted. Written before the model is asked, immutable but for its state.
CREATE TABLE turn (
    owner_key     bigint NOT NULL REFERENCES owner ON DELETE CASCADE,
    id            text NOT NULL CHECK (char_length(id) BETWEEN 1 AND 128),
    app           text NOT NULL,
    session       text,
    state         text NOT NULL CHECK (state IN ('PENDING', 'STORED', 'PARKED', 'ERASED')),
    -- Why it is parked: one of the reasons of the contract, and the place of the fault; never a value.
    reason        text,
    detail        text,
    off_record    boolean NOT NULL DEFAULT false,
    said_at       timestamptz,
    received_at   timestamptz NOT NULL,
    time_zone     text,
    messages      jsonb,
    recalled      jsonb,
    metadata      jsonb,
    -- SHA-256 of the messages as they were sent, to tell a retry from another turn with the same id.
    fingerprint   bytea,
    topic         text NOT NULL,
    "partition"   integer NOT NULL,
    "offset"      bigint NOT NULL,
    recorded_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_key, id)
) WITH (fillfactor = 85);
-- The last messages of a session, for the context of the next window.
CREATE INDEX turn_session ON turn (owner_key, session, received_at DESC, "offset" DESC);

-- One row for each effect of a turn: written in the transaction of the effect, so that it happens once. Outlives the turn.
CREATE TABLE ledger (
    owner_key   bigint NOT NULL REFERENCES owner ON DELETE CASCADE,
    turn_id     text NOT NULL,
    -- 0: the first reading; a replay has a number of its own.
    run         integer NOT NULL DEFAULT 0,
    app         text NOT NULL,
    outcome     text NOT NULL CHECK (outcome IN ('STORED', 'PARKED', 'ERASED')),
    topic       text NOT NULL,
    "partition" integer NOT NULL,
    "offset"    bigint NOT NULL,
    received_at timestamptz NOT NULL,
    decided_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner_key, turn_id, run)
);

CREATE TABLE memory (
    owner_key         bigint NOT NULL REFERENCES owner ON DELETE CASCADE,
    id                uuid NOT NULL,
    app               text NOT NULL,
    session           text,
    content           text NOT NULL,
    -- SHA-256 of the normalised text.
    content_hash      bytea NOT NULL,
    text_search       tsvector NOT NULL,
    data              jsonb,
    tags              text[] NOT NULL DEFAULT '{}',
    type              text,
    category          text NOT NULL,
    importance        smallint NOT NULL CHECK (importance BETWEEN 1 AND 10),
    confidence        real NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    pinned            boolean NOT NULL DEFAULT false,
    subject           text,
    attribute         text,
    role              text CHECK (role IN ('user', 'assistant', 'system', 'tool')),
    state             text NOT NULL CHECK (
        state IN ('LIVE', 'ARCHIVED', 'EXPIRED', 'SUPERSEDED', 'RETRACTED', 'EVICTED', 'FORGOTTEN')),
    valid_from        timestamptz NOT NULL,
    valid_to          timestamptz,
    recorded_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    retired_at        timestamptz,
    retired_reason    text,
    supersedes        uuid,
    superseded_by     uuid,
    -- The order of the statement that this text comes from, among the owner's statements.
    stated_at         timestamptz NOT NULL,
    received_at       timestamptz NOT NULL,
    source_offset     bigint NOT NULL,
    source_index      integer NOT NULL,
    -- Fading: strength is 2 ^ (-(now - reinforced_at) / half_life_seconds), computed when read. NULL never fades.
    reinforced_at     timestamptz NOT NULL,
    half_life_seconds double precision CHECK (half_life_seconds > 0),
    fades_at          timestamptz,
    expires_at        timestamptz,
    access_count      bigint NOT NULL DEFAULT 0,
    accessed_at       timestamptz,
    confirmed_at      timestamptz,
    confirmations     integer NOT NULL DEFAULT 0,
    -- Raised by every change of the row: the etag.
    version           bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (owner_key, id),
    CHECK (valid_to IS NULL OR valid_to >= valid_from),
    CHECK ((state = 'LIVE') = (retired_at IS NULL)),
    CHECK (NOT (state = 'LIVE' AND superseded_by IS NOT NULL)),
    CHECK (supersedes <> id AND superseded_by <> id)
) WITH (fillfactor = 80);
CREATE INDEX memory_same_text ON memory (owner_key, content_hash);
CREATE INDEX memory_slot ON memory (owner_key, subject, attribute) WHERE state = 'LIVE';
CREATE INDEX memory_recorded ON memory (owner_key, recorded_at, id);
CREATE INDEX memory_fades ON memory (fades_at) WHERE state = 'LIVE' AND NOT pinned;
CREATE INDEX memory_expires ON memory (expires_at) WHERE state = 'LIVE';

-- The vector of a memory, immutable. The primary key covers it, so that an owner's nearest are found in neighbouring index
-- pages and a change of a memory never rewrites a vector. PLAIN: kept in the row, never compressed or moved out.
CREATE TABLE memory_vector (
    owner_key bigint NOT NULL,
    model_key smallint NOT NULL REFERENCES embedding_model,
    id        uuid NOT NULL,
    app       text NOT NULL,
    -- Up to 640 dimensions as vector, up to 1,280 as halfvec: what an index entry can carry.
    embedding vector,
    half      halfvec,
    PRIMARY KEY (owner_key, model_key, id) INCLUDE (app, embedding, half),
    FOREIGN KEY (owner_key, id) REFERENCES memory ON DELETE CASCADE,
    CHECK ((embedding IS NULL) <> (half IS NULL))
);
ALTER TABLE memory_vector ALTER COLUMN embedding SET STORAGE PLAIN;
ALTER TABLE memory_vector ALTER COLUMN half SET STORAGE PLAIN;

-- The messages that support a memory.
CREATE TABLE memory_source (
    owner_key     bigint NOT NULL,
    memory_id     uuid NOT NULL,
    turn_id       text NOT NULL,
    -- -1: the turn as a whole.
    message_index integer NOT NULL DEFAULT -1,
    app           text NOT NULL,
    role          text,
    said_at       timestamptz NOT NULL,
    PRIMARY KEY (owner_key, memory_id, turn_id, message_index),
    FOREIGN KEY (owner_key, memory_id) REFERENCES memory ON DELETE CASCADE
);
CREATE INDEX memory_source_turn ON memory_source (owner_key, turn_id);

-- What was done with a candidate, and why.
CREATE TABLE decision (
    owner_key      bigint NOT NULL REFERENCES owner ON DELETE CASCADE,
    id             uuid NOT NULL,
    app            text NOT NULL,
    cause_kind     text NOT NULL CHECK (cause_kind IN ('turn', 'request', 'timer')),
    -- The turn's id, or the request's.
    cause_id       text NOT NULL,
    run            integer NOT NULL DEFAULT 0,
    -- The candidate as it was read, without its vector.
    candidate      jsonb NOT NULL,
    route          text NOT NULL,
    -- [{"id", "similarity", "state", "same_text"}], nearest first.
    neighbours     jsonb NOT NULL DEFAULT '[]',
    action         text NOT NULL CHECK (action IN ('ADD', 'CONFIRM', 'UPDATE', 'DELETE', 'NOOP')),
    reason         text NOT NULL,
    -- The memory that came of it.
    memory_id      uuid,
    model          text,
    prompt_version text,
    tokens_in      integer NOT NULL DEFAULT 0,
    tokens_out     integer NOT NULL DEFAULT 0,
    latency_seconds double precision NOT NULL DEFAULT 0,
    decided_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner_key, id)
);
CREATE INDEX decision_cause ON decision (owner_key, cause_id);
CREATE INDEX decision_memory ON decision (owner_key, memory_id);

-- The history of an owner: each row holds the memory as it was after the change, whole. Append-only.
CREATE TABLE change (
    owner_key         bigint NOT NULL REFERENCES owner ON DELETE CASCADE,
    seq               bigint NOT NULL CHECK (seq > 0),
    app               text NOT NULL,
    kind              text NOT NULL CHECK (kind IN (
        'added', 'confirmed', 'superseded', 'retracted', 'archived', 'expired', 'evicted', 'revived', 'restored', 'edited',
        'pinned', 'unpinned', 'promoted', 'linked', 'unlinked', 'forgotten', 'purged', 'owner_erased')),
    at                timestamptz NOT NULL DEFAULT clock_timestamp(),
    cause_kind        text NOT NULL CHECK (cause_kind IN ('turn', 'request', 'timer')),
    cause_id          text NOT NULL,
    decision_id       uuid,
    memory_id         uuid,
    session           text,
    content           text,
    data              jsonb,
    tags              text[],
    type              text,
    category          text,
    importance        smallint,
    confidence        real,
    pinned            boolean,
    subject           text,
    attribute         text,
    role              text,
    state             text,
    valid_from        timestamptz,
    valid_to          timestamptz,
    recorded_at       timestamptz,
    retired_at        timestamptz,
    retired_reason    text,
    supersedes        uuid,
    superseded_by     uuid,
    stated_at         timestamptz,
    received_at       timestamptz,
    source_offset     bigint,
    source_index      integer,
    reinforced_at     timestamptz,
    half_life_seconds double precision,
    fades_at          timestamptz,
    expires_at        timestamptz,
    access_count      bigint,
    accessed_at       timestamptz,
    confirmed_at      timestamptz,
    confirmations     integer,
    version           bigint,
    -- [{"turn_id", "message_index", "role", "said_at"}]
    sources           jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (owner_key, seq)
);
CREATE INDEX change_memory ON change (owner_key, memory_id, seq);

-- What the relay still has to publish: pointers to changes, trimmed when they are out. The change stays.
CREATE TABLE outbox (
    owner_key  bigint NOT NULL,
    seq        bigint NOT NULL,
    app        text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner_key, seq),
    FOREIGN KEY (owner_key, seq) REFERENCES change ON DELETE CASCADE
);

-- What was set aside. Identity: its place in the log. What could not be read as a turn has no app and no owner.
CREATE TABLE parked (
    topic       text NOT NULL,
    "partition" integer NOT NULL,
    "offset"    bigint NOT NULL,
    app         text,
    owner_key   bigint,
    turn_id     text,
    stage       text NOT NULL,
    reason      text NOT NULL,
    detail      text NOT NULL,
    attempts    integer NOT NULL,
    parked_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (topic, "partition", "offset")
);
CREATE INDEX parked_at ON parked (parked_at);

CREATE TABLE api_key (
    id           uuid PRIMARY KEY,
    app          text NOT NULL REFERENCES app,
    -- SHA-256 of the whole key. 256 random bits need no salt and no slow hash.
    key_hash     bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
    -- The first characters, to tell keys apart in a list.
    prefix       text NOT NULL,
    name         text NOT NULL DEFAULT '',
    scopes       text[] NOT NULL DEFAULT '{read,write,admin}',
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
);
CREATE INDEX api_key_app ON api_key (app);

-- The answers to tells that named a request id: the same again has no second effect and the same answer.
CREATE TABLE answer (
    owner_key  bigint NOT NULL REFERENCES owner ON DELETE CASCADE,
    method     text NOT NULL,
    request_id text NOT NULL,
    app        text NOT NULL,
    body_hash  bytea NOT NULL,
    -- The change that answered it: the memory as it was then, whole.
    seq        bigint,
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_key, method, request_id)
);
CREATE INDEX answer_at ON answer (at);

-- The second wall. FORCE: the owner of the tables is held by it too.
ALTER TABLE app ENABLE ROW LEVEL SECURITY;
ALTER TABLE app FORCE ROW LEVEL SECURITY;
ALTER TABLE owner ENABLE ROW LEVEL SECURITY;
ALTER TABLE owner FORCE ROW LEVEL SECURITY;
ALTER TABLE turn ENABLE ROW LEVEL SECURITY;
ALTER TABLE turn FORCE ROW LEVEL SECURITY;
ALTER TABLE ledger ENABLE ROW LEVEL SECURITY;
ALTER TABLE ledger FORCE ROW LEVEL SECURITY;
ALTER TABLE memory ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_vector ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_vector FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_source ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_source FORCE ROW LEVEL SECURITY;
ALTER TABLE decision ENABLE ROW LEVEL SECURITY;
ALTER TABLE decision FORCE ROW LEVEL SECURITY;
ALTER TABLE change ENABLE ROW LEVEL SECURITY;
ALTER TABLE change FORCE ROW LEVEL SECURITY;
ALTER TABLE outbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE outbox FORCE ROW LEVEL SECURITY;
ALTER TABLE parked ENABLE ROW LEVEL SECURITY;
ALTER TABLE parked FORCE ROW LEVEL SECURITY;
-- Not forced on keys: authenticate() below runs as the owner of the tables and looks a key up before its app is known.
ALTER TABLE api_key ENABLE ROW LEVEL SECURITY;
ALTER TABLE answer ENABLE ROW LEVEL SECURITY;
ALTER TABLE answer FORCE ROW LEVEL SECURITY;

-- Roles belong to the whole cluster: another database, or a migration beside this one, may have made them already.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['mnemo_worker', 'mnemo_query', 'mnemo_timer', 'mnemo_operator'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
        EXECUTE format('GRANT USAGE ON SCHEMA public TO %I', name);
        -- Who made the roles may not enter them by that alone; who finds them made needs no second grant.
        IF NOT pg_has_role(current_user, name, 'SET') THEN
            EXECUTE format('GRANT %I TO current_user WITH SET TRUE, INHERIT FALSE', name);
        END IF;
    END LOOP;
END
$$;

CREATE POLICY app_wall ON app USING (app = current_setting('mnemo.app', true));
CREATE POLICY app_wall ON owner USING (app = current_setting('mnemo.app', true));
CREATE POLICY app_wall ON turn USING (app = current_setting('mnemo.app', true));
CREATE POLICY app_wall ON ledger USING (app = current_setting('mnemo.app', true));
CREATE POLICY app_wall ON memory USING (app = current_setting('mnemo.app', true));
CREATE POLICY app_wall ON memory_vector USING (app = current_setting('mnemo.app', true));
CREATE POLICY app_wall ON memory_source USING (app = current_setting('mnemo.app', true));
CREATE POLICY app_wall ON decision USING (app = current_setting('mnemo.app', true));
CREATE POLICY app_wall ON change USING (app = current_setting('mnemo.app', true));
CREATE POLICY app_wall ON outbox USING (app = current_setting('mnemo.app', true));
CREATE POLICY app_wall ON api_key USING (app = current_setting('mnemo.app', true));
CREATE POLICY app_wall ON answer USING (app = current_setting('mnemo.app', true));
-- What could not be read as a turn belongs to no app: a worker may set it aside without a tenant.
CREATE POLICY app_wall ON parked
    USING (app = current_setting('mnemo.app', true) OR app IS NULL);

-- Operators and timers work across apps.
CREATE POLICY operator_sees_all ON app TO mnemo_operator, mnemo_timer USING (true);
CREATE POLICY operator_sees_all ON owner TO mnemo_operator, mnemo_timer USING (true);
CREATE POLICY operator_sees_all ON turn TO mnemo_operator, mnemo_timer USING (true);
CREATE POLICY operator_sees_all ON ledger TO mnemo_operator, mnemo_timer USING (true);
CREATE POLICY operator_sees_all ON memory TO mnemo_operator, mnemo_timer USING (true);
CREATE POLICY operator_sees_all ON memory_vector TO mnemo_operator, mnemo_timer USING (true);
CREATE POLICY operator_sees_all ON memory_source TO mnemo_operator, mnemo_timer USING (true);
CREATE POLICY operator_sees_all ON decision TO mnemo_operator, mnemo_timer USING (true);
CREATE POLICY operator_sees_all ON change TO mnemo_operator, mnemo_timer USING (true);
CREATE POLICY operator_sees_all ON outbox TO mnemo_operator, mnemo_timer USING (true);
CREATE POLICY operator_sees_all ON parked TO mnemo_operator, mnemo_timer USING (true);
CREATE POLICY operator_sees_all ON api_key TO mnemo_operator USING (true);
CREATE POLICY operator_sees_all ON answer TO mnemo_operator, mnemo_timer USING (true);

GRANT SELECT, INSERT, UPDATE ON app, owner, turn, memory TO mnemo_worker;
GRANT SELECT, INSERT ON ledger, memory_vector, memory_source, decision, change, outbox, embedding_model TO mnemo_worker;
GRANT UPDATE ON ledger, embedding_model TO mnemo_worker;
GRANT SELECT, DELETE ON outbox TO mnemo_worker;
GRANT SELECT, INSERT, UPDATE ON parked TO mnemo_worker;

GRANT SELECT, INSERT, UPDATE ON app, owner, memory, answer TO mnemo_query;
GRANT SELECT ON turn, ledger, embedding_model TO mnemo_query;
GRANT SELECT, INSERT ON memory_vector, memory_source, decision, change, outbox, embedding_model TO mnemo_query;
GRANT UPDATE ON embedding_model TO mnemo_query;

GRANT SELECT, INSERT, UPDATE, DELETE ON
    app, owner, turn, ledger, memory, memory_vector, memory_source, decision, change, outbox, parked, answer, embedding_model
    TO mnemo_timer, mnemo_operator;
-- The book of migrations (made by the migrating code itself): whether the schema is the one that is needed.
GRANT SELECT ON schema_migration TO mnemo_worker, mnemo_query, mnemo_timer, mnemo_operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON api_key TO mnemo_operator;

-- A key is presented before its app is known: this is the one look across apps that the query service has.
CREATE FUNCTION authenticate(hash bytea)
RETURNS TABLE (id uuid, app text, scopes text[])
LANGUAGE sql STABLE SECURITY DEFINER
-- pg_temp last: a caller's temporary table must not stand in for the keys.
SET search_path = public, pg_temp
AS $$
    SELECT k.id, k.app, k.scopes
    FROM api_key AS k
    WHERE k.key_hash = hash AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
$$;
REVOKE ALL ON FUNCTION authenticate FROM PUBLIC;
GRANT EXECUTE ON FUNCTION authenticate TO mnemo_query, mnemo_operator;

-- outside a transaction
-- Indexes that operating the stream needs, built beside what runs: each statement by itself, and each safe to do again.

-- Readings after the first are few among all.
DROP INDEX CONCURRENTLY IF EXISTS ledger_run;
CREATE INDEX CONCURRENTLY ledger_run ON ledger (run) WHERE run > 0;

-- What was parked of one owner.
DROP INDEX CONCURRENTLY IF EXISTS parked_owner;
CREATE INDEX CONCURRENTLY parked_owner ON parked (owner_key) WHERE owner_key IS NOT NULL;

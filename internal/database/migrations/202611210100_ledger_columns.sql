-- +goose Up
-- Columns for selection. The database computes them from the text that the hash covers, so they cannot differ from it.
-- +sqlite
ALTER TABLE ledger ADD COLUMN actor TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(text) THEN json_extract(text, '$.actor') END) VIRTUAL;
-- +postgres
ALTER TABLE ledger ADD COLUMN actor TEXT GENERATED ALWAYS AS (text::json ->> 'actor') STORED;
-- +sqlite
ALTER TABLE ledger ADD COLUMN action TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(text) THEN json_extract(text, '$.action') END) VIRTUAL;
-- +postgres
ALTER TABLE ledger ADD COLUMN action TEXT GENERATED ALWAYS AS (text::json ->> 'action') STORED;
-- +sqlite
ALTER TABLE ledger ADD COLUMN object TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(text) THEN json_extract(text, '$.object') END) VIRTUAL;
-- +postgres
ALTER TABLE ledger ADD COLUMN object TEXT GENERATED ALWAYS AS (text::json ->> 'object') STORED;
-- Whole seconds, as 2026-01-31T12:00:00: fractions have different lengths, so texts with them would sort differently.
-- +sqlite
ALTER TABLE ledger ADD COLUMN at_second TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(text) THEN substr(json_extract(text, '$.at'), 1, 19) END) VIRTUAL;
-- +postgres
ALTER TABLE ledger ADD COLUMN at_second TEXT GENERATED ALWAYS AS (substr(text::json ->> 'at', 1, 19)) STORED;
CREATE INDEX ledger_actor ON ledger (actor, seq);
CREATE INDEX ledger_action ON ledger (action, seq);
CREATE INDEX ledger_object ON ledger (object, seq);
CREATE INDEX ledger_at ON ledger (at_second, seq);

-- +goose Up
-- The channel by which a decision was made: empty in the portal, slack, or webhook:NAME. Programs of before name the columns that they
-- insert and read, so that they work beside this one.
ALTER TABLE ticket_events ADD COLUMN through TEXT NOT NULL DEFAULT '';

INSERT INTO schema_compatibility (version, oldest) VALUES (202611271840, 202611231710);

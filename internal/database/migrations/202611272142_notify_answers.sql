-- +goose Up
-- Messages in which a ticket can be decided: the version of the ticket that is decided in them (0 if none is), what identifies the message
-- at the channel (empty if it cannot be changed), and what happened to the ticket since that version (a message; empty while nothing did).
-- In the state retract, the controls of the message wait to be replaced by that. Programs of before name the columns that they insert, and
-- neither lease nor remove rows of that state.
ALTER TABLE notifications ADD COLUMN answer_version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE notifications ADD COLUMN receipt TEXT NOT NULL DEFAULT '';
ALTER TABLE notifications ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
CREATE INDEX notifications_answers ON notifications (ticket) WHERE answer_version > 0;

INSERT INTO schema_compatibility (version, oldest) VALUES (202611272142, 202611231710);

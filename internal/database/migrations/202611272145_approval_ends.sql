-- +goose Up
-- The accesses of an application that end soon, which the home page lists by their end.
CREATE INDEX items_application_ends ON items (application_name, state, expires_at, ticket) WHERE expires_at > 0;

INSERT INTO schema_compatibility (version, oldest) VALUES (202611272145, 202611231710);

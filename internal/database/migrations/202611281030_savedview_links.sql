-- +goose Up
-- The key of the link with which other people open a saved view; empty unless the person shares it. Programs of before neither read nor
-- write it, and replace a view without changing it.
ALTER TABLE saved_views ADD COLUMN link TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX saved_views_link ON saved_views (link) WHERE link <> '';

INSERT INTO schema_compatibility (version, oldest) VALUES (202611281030, 202611231710);

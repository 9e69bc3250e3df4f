-- +goose Up
-- The filters of the portal's pages that people saved under a name. Instants are microseconds since 1970 in UTC.
CREATE TABLE saved_views (
    id       SERIAL_KEY,
    person   TEXT   NOT NULL,
    page     TEXT   NOT NULL,
    name     TEXT   NOT NULL,
    query    TEXT   NOT NULL, -- of the page's address, without the question mark
    saved_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX saved_views_name ON saved_views (person, page, name);

INSERT INTO schema_compatibility (version, oldest) VALUES (202611262210, 202611231710);

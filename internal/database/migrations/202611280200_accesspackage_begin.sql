-- +goose Up
-- Access packages, with what lists show of the current version. Instants are microseconds since 1970 in UTC; 0 is never.
CREATE TABLE access_packages (
    name         TEXT    NOT NULL PRIMARY KEY,
    version      BIGINT  NOT NULL, -- the current one
    title        TEXT    NOT NULL,
    description  TEXT    NOT NULL,
    team         TEXT    NOT NULL, -- the id of a group
    chain        TEXT    NOT NULL,
    resources    BIGINT  NOT NULL, -- their number
    published_at BIGINT  NOT NULL,
    archived_at  BIGINT  NOT NULL,
    archived_by  TEXT    NOT NULL
);

-- The published versions, which never change.
CREATE TABLE access_package_versions (
    package      TEXT    NOT NULL,
    number       BIGINT  NOT NULL, -- from 1 on
    content      TEXT    NOT NULL, -- canonical JSON
    digest       TEXT    NOT NULL, -- the SHA-256 of the content
    ticket       BIGINT  NOT NULL, -- which published it
    published_by TEXT    NOT NULL,
    published_at BIGINT  NOT NULL,
    PRIMARY KEY (package, number)
);
CREATE UNIQUE INDEX access_package_versions_ticket ON access_package_versions (ticket);

-- The package that an item is a part of, by which the holders of a package are found.
ALTER TABLE items ADD COLUMN package TEXT NOT NULL DEFAULT '';
CREATE INDEX items_package ON items (package, ticket) WHERE package <> '';

INSERT INTO schema_compatibility (version, oldest) VALUES (202611280200, 202611231710);

-- +goose Up
-- The updates that give a version of an access package to the applications which hold access by it. Instants are microseconds since 1970 in
-- UTC; 0 is never.
CREATE TABLE access_package_updates (
    package  TEXT   NOT NULL,
    version  BIGINT NOT NULL,
    state    TEXT   NOT NULL,
    reason   TEXT   NOT NULL, -- a message in JSON; empty unless it was stopped
    begun_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    PRIMARY KEY (package, version)
);
CREATE INDEX access_package_updates_open ON access_package_updates (package, version) WHERE ended_at = 0;

-- The applications of an update.
CREATE TABLE access_package_holders (
    package     TEXT   NOT NULL,
    version     BIGINT NOT NULL,
    application TEXT   NOT NULL, -- its name
    state       TEXT   NOT NULL,
    plan        TEXT   NOT NULL, -- JSON
    ticket      BIGINT NOT NULL, -- 0 if there is none
    message     TEXT   NOT NULL, -- a message in JSON, or empty
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (package, version, application)
);

INSERT INTO schema_compatibility (version, oldest) VALUES (202611280300, 202611231710);

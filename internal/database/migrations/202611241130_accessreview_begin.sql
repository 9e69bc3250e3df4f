-- +goose Up
-- Campaigns that review accesses. Instants are microseconds since 1970 in UTC.
CREATE TABLE reviews (
    id         SERIAL_KEY,
    state      TEXT   NOT NULL,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    body       TEXT   NOT NULL -- JSON
);

-- One row for each access of a campaign; the column body contains all that is not selected by.
CREATE TABLE review_lines (
    review           BIGINT NOT NULL,
    line             BIGINT NOT NULL,
    version          BIGINT NOT NULL,
    state            TEXT   NOT NULL,
    outcome          TEXT   NOT NULL,
    recommendation   TEXT   NOT NULL,
    silent           BOOLEAN NOT NULL,
    ticket           BIGINT NOT NULL,
    item             BIGINT NOT NULL,
    application_name TEXT   NOT NULL,
    resource_name    TEXT   NOT NULL,
    words            TEXT   NOT NULL, -- what is searched, in lower case
    body             TEXT   NOT NULL, -- JSON
    PRIMARY KEY (review, line)
);
CREATE UNIQUE INDEX review_lines_grant ON review_lines (review, ticket, item);
CREATE INDEX review_lines_pair ON review_lines (application_name, resource_name);
CREATE INDEX review_lines_state ON review_lines (review, state, line);
-- Counts and searches read this index alone.
CREATE INDEX review_lines_scan ON review_lines (review, line, state, outcome, recommendation, silent, words);

CREATE TABLE review_reviewers (
    person TEXT   NOT NULL,
    review BIGINT NOT NULL,
    line   BIGINT NOT NULL,
    state  TEXT   NOT NULL, -- of the line
    PRIMARY KEY (person, review, line)
);
CREATE INDEX review_reviewers_state ON review_reviewers (person, review, state, line);
CREATE INDEX review_reviewers_line ON review_reviewers (review, line);

INSERT INTO schema_compatibility (version, oldest) VALUES (202611241130, 202611231710);

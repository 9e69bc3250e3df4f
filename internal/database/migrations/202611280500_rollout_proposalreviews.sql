-- +goose Up
-- The last review of the observed clients of a resource. Instants are microseconds since 1970 in UTC; 0 is never.
CREATE TABLE proposal_reviews (
    resource    TEXT   NOT NULL PRIMARY KEY, -- the resource's name
    reviewed_at BIGINT NOT NULL,
    reviewed_by TEXT   NOT NULL,
    seen_until  BIGINT NOT NULL, -- the end of the flows that the reviewer saw
    next_review BIGINT NOT NULL,
    reminded_at BIGINT NOT NULL
);
CREATE INDEX proposal_reviews_due ON proposal_reviews (next_review) WHERE next_review > 0 AND reminded_at = 0;

-- The last notice to the owners of an application that the owners of a resource do not want to grant it access.
CREATE TABLE client_notices (
    resource    TEXT   NOT NULL, -- the resource's name
    application TEXT   NOT NULL, -- the application's name
    sent_at     BIGINT NOT NULL,
    sent_by     TEXT   NOT NULL,
    reason      TEXT   NOT NULL,
    recipients  BIGINT NOT NULL, -- their number
    PRIMARY KEY (resource, application)
);
CREATE INDEX client_notices_sender ON client_notices (sent_by, sent_at);

INSERT INTO schema_compatibility (version, oldest) VALUES (202611280500, 202611231710);

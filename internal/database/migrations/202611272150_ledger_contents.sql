-- +goose Up
-- The specs of the objects of ledger_objects, so that the next line about an object can say what was changed. A row counts only if its uid and
-- generation are those of ledger_objects, which programs of before write alone. Instants are microseconds since 1970 in UTC; 0 is unknown.
CREATE TABLE ledger_contents (
    kind        TEXT   NOT NULL,
    name        TEXT   NOT NULL,
    uid         TEXT   NOT NULL,
    generation  BIGINT NOT NULL,
    spec        TEXT   NOT NULL,
    created_at  BIGINT NOT NULL, -- the object
    recorded_at BIGINT NOT NULL, -- the object was like this then
    PRIMARY KEY (kind, name)
);

-- An instant before which every change of the host cluster is in the ledger, except for those that a watch may report late.
CREATE TABLE ledger_watched (
    id BIGINT PRIMARY KEY, -- 1
    at BIGINT NOT NULL
);

INSERT INTO schema_compatibility (version, oldest) VALUES (202611272150, 202611231710);

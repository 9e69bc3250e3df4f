-- +goose Up
-- Each item of a ticket has a state and a chain of its own; tickets.state is derived from them. The columns are for
-- selection, body is the whole item.
CREATE TABLE items (
    ticket           BIGINT NOT NULL REFERENCES tickets (number),
    position         BIGINT NOT NULL,
    state            TEXT    NOT NULL,
    application      TEXT    NOT NULL,
    application_name TEXT    NOT NULL,
    resource         TEXT    NOT NULL,
    resource_name    TEXT    NOT NULL,
    policy           TEXT    NOT NULL,
    target_ticket    BIGINT NOT NULL, -- 0: none
    target_item      BIGINT NOT NULL,
    expires_at       BIGINT NOT NULL,
    due_at           BIGINT NOT NULL, -- the next instant at which the passing of time changes the item
    body             TEXT    NOT NULL, -- JSON
    PRIMARY KEY (ticket, position)
);
-- No PostgreSQL database was ever created with the earlier schema, so only SQLite has rows to convert.
-- +sqlite
INSERT INTO items SELECT i.ticket, i.position, t.state, i.application, i.application_name, i.resource, i.resource_name, t.policy, 0, 0,
    t.expires_at, CASE WHEN t.state IN ('approved', 'applying', 'effective', 'failed') THEN t.expires_at ELSE 0 END,
    json_object('State', t.state, 'Application', i.application, 'ApplicationName', i.application_name, 'Resource', i.resource,
        'ResourceName', i.resource_name, 'Actions', json(i.actions), 'SID', i.sid, 'Duration', t.duration_seconds * 1000000000,
        'ExpiresAt', CASE t.expires_at WHEN 0 THEN '0001-01-01T00:00:00Z' ELSE strftime('%Y-%m-%dT%H:%M:%SZ', t.expires_at / 1000000, 'unixepoch') END,
        'Message', t.message, 'Policy', t.policy, 'PolicyUID', t.policy_uid, 'WrittenGeneration', t.written_generation, 'RevokeGeneration', t.revoke_generation,
        'Steps', (SELECT json_group_array(json_object('Name', s.name, 'State', s.state, 'Note', s.note, 'Quorum', 1,
            'Approvers', (SELECT json_group_array(a.person) FROM step_approvers a WHERE a.ticket = s.ticket AND a.position = s.position),
            'From', json(CASE s.name WHEN 'leader' THEN '["requester.leader"]' WHEN 'security' THEN '["group:security"]' ELSE '["resource.owner","group:security"]' END),
            'Votes', CASE s.decided_by WHEN '' THEN NULL ELSE json_array(json_object('Person', s.decided_by, 'Comment', s.comment,
                'Approve', json(CASE s.state WHEN 'approved' THEN 'true' ELSE 'false' END),
                'At', strftime('%Y-%m-%dT%H:%M:%S', s.decided_at / 1000000, 'unixepoch') || printf('.%06dZ', s.decided_at % 1000000))) END))
            FROM (SELECT * FROM ticket_steps WHERE ticket = t.number ORDER BY position) s))
    FROM ticket_items i JOIN tickets t ON t.number = i.ticket;
CREATE INDEX items_application ON items (application, resource, state);
CREATE INDEX items_application_name ON items (application_name);
CREATE INDEX items_resource ON items (resource, state);
CREATE INDEX items_resource_name ON items (resource_name);
CREATE INDEX items_policy ON items (policy, state);
CREATE INDEX items_state ON items (state, expires_at);
CREATE INDEX items_target ON items (target_ticket, target_item);
CREATE INDEX items_due ON items (due_at);

-- The people an item concerns: those it waits for, those its chain names, those who have decided.
CREATE TABLE concerns (
    ticket BIGINT NOT NULL REFERENCES tickets (number),
    item   BIGINT NOT NULL,
    person TEXT    NOT NULL,
    role   TEXT    NOT NULL,
    PRIMARY KEY (person, role, ticket, item)
);
CREATE INDEX concerns_ticket ON concerns (ticket);
-- +sqlite
INSERT INTO concerns SELECT a.ticket, 0, a.person, 'named' FROM step_approvers a JOIN tickets t ON t.number = a.ticket WHERE a.person <> t.requester
    GROUP BY a.ticket, a.person;
-- +sqlite
INSERT INTO concerns SELECT a.ticket, 0, a.person, 'waits' FROM step_approvers a JOIN ticket_steps s ON s.ticket = a.ticket AND s.position = a.position
    JOIN tickets t ON t.number = a.ticket WHERE t.state = 'pending' AND s.state = 'current' AND a.person <> t.requester
    AND NOT EXISTS (SELECT 1 FROM ticket_steps d WHERE d.ticket = a.ticket AND d.decided_by = a.person);
-- +sqlite
INSERT INTO concerns SELECT ticket, 0, decided_by, 'decided' FROM ticket_steps WHERE decided_by <> '' GROUP BY ticket, decided_by;

DROP TABLE step_approvers;
DROP TABLE ticket_steps;
DROP TABLE ticket_items;
DROP INDEX tickets_state;
DROP INDEX tickets_policy;
ALTER TABLE tickets DROP COLUMN duration_seconds;
ALTER TABLE tickets DROP COLUMN expires_at;
ALTER TABLE tickets DROP COLUMN message;
ALTER TABLE tickets DROP COLUMN policy;
ALTER TABLE tickets DROP COLUMN policy_uid;
ALTER TABLE tickets DROP COLUMN written_generation;
ALTER TABLE tickets DROP COLUMN revoke_generation;
ALTER TABLE tickets ADD COLUMN kind TEXT NOT NULL DEFAULT 'grant';
ALTER TABLE tickets ADD COLUMN break_glass BOOLEAN NOT NULL DEFAULT false;
CREATE INDEX tickets_state ON tickets (state);

ALTER TABLE ticket_events ADD COLUMN item BIGINT NOT NULL DEFAULT 0; -- -1: the whole ticket
ALTER TABLE ticket_events ADD COLUMN on_behalf_of TEXT NOT NULL DEFAULT '';
UPDATE ticket_events SET item = -1 WHERE kind IN ('submitted', 'withdrawn');

DROP INDEX outbox_resource;
ALTER TABLE outbox RENAME COLUMN resource TO job_key;
ALTER TABLE outbox ADD COLUMN item BIGINT NOT NULL DEFAULT 0;
CREATE INDEX outbox_key ON outbox (job_key, id);

CREATE TABLE delegations (
    id          SERIAL_KEY,
    from_person TEXT    NOT NULL,
    to_person   TEXT    NOT NULL,
    start_at    BIGINT NOT NULL,
    end_at      BIGINT NOT NULL,
    reason      TEXT    NOT NULL,
    created_by  TEXT    NOT NULL,
    created_at  BIGINT NOT NULL,
    ended_at    BIGINT NOT NULL,
    ended_by    TEXT    NOT NULL
);
CREATE INDEX delegations_to ON delegations (to_person, end_at);
CREATE INDEX delegations_from ON delegations (from_person, end_at);

-- +goose Up
-- Every list of tickets scans one of these indexes from its newest end, until the page is full.
CREATE INDEX tickets_requester ON tickets (requester, number);
CREATE INDEX tickets_requester_updated ON tickets (requester, updated_at, number);
DROP INDEX tickets_state;
CREATE INDEX tickets_state ON tickets (state, number);
CREATE INDEX tickets_kind ON tickets (kind, number);
DROP INDEX tickets_updated;
CREATE INDEX tickets_updated ON tickets (updated_at, number);

DROP INDEX items_application;
CREATE INDEX items_application ON items (application, ticket);
DROP INDEX items_application_name;
CREATE INDEX items_application_name ON items (application_name, ticket);
DROP INDEX items_resource;
CREATE INDEX items_resource ON items (resource, ticket);
DROP INDEX items_resource_name;
CREATE INDEX items_resource_name ON items (resource_name, ticket);
DROP INDEX items_policy;
CREATE INDEX items_policy ON items (policy, ticket);
DROP INDEX items_state;
CREATE INDEX items_state ON items (state, ticket);
DROP INDEX items_target;
CREATE INDEX items_target ON items (target_ticket, target_item) WHERE target_ticket > 0;
DROP INDEX items_due;
CREATE INDEX items_due ON items (due_at) WHERE due_at > 0;
CREATE INDEX items_expires ON items (expires_at) WHERE expires_at > 0;

-- +goose Up
-- The position of the submission in the ticket's trace (a W3C traceparent), empty where it was not traced. Programs of before
-- name the columns that they insert and read, so that they work beside this one.
ALTER TABLE tickets ADD COLUMN trace_parent TEXT NOT NULL DEFAULT '';

-- +goose Up
-- The hours of a day are added up when all of them have ended. Totals of a year are read from these sums. "days_folded" is the day up to which
-- that was done; it is never later than "folded". The days that are in the table hours already are added up by the next batches, one by each.
CREATE TABLE days (
    edge       INTEGER NOT NULL,
    bucket     INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    PRIMARY KEY (edge, bucket)
) WITHOUT ROWID;
ALTER TABLE folding ADD COLUMN days_folded INTEGER NOT NULL DEFAULT 0;
UPDATE folding SET days_folded = min(folded, coalesce((SELECT min(bucket) FROM rollups), folded)) / 86400000000 * 86400000000;

-- +goose Down
SELECT 'there is no way back: an older program would not add late roll-ups to the days';

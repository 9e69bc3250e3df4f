-- +goose Up
-- The counts of a review read the first index alone, in the order of their groups; a page of the open lines with a recommendation
-- reads the second one.
CREATE INDEX review_lines_count ON review_lines (review, state, outcome, recommendation, silent);
CREATE INDEX review_lines_recommended ON review_lines (review, state, recommendation, line);

INSERT INTO schema_compatibility (version, oldest) VALUES (202611272305, 202611231710);

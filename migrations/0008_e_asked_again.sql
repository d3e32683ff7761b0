-- Who had the plan of an expired review asked for again: at most one new review follows. Older rows have nobody.
ALTER TABLE decisions ADD COLUMN asked_again TEXT;

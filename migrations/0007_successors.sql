-- A review of the same plan opens again after a question about it was answered: which review it takes the place of. Older rows have none.
ALTER TABLE gates ADD COLUMN replaces TEXT;

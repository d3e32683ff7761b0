-- The task (its inbox row) whose chat and files were read last for this lane, until its turn begins. A process that dies over that counts among
-- the lane's deaths.
ALTER TABLE lanes ADD COLUMN gathering BIGINT;

-- A try of this row may have arrived although nobody wrote it down: where posts have no key of their own, the next try looks first.
-- Rows that wait while this is applied are taken for such, if they were tried at all.
ALTER TABLE outbox ADD COLUMN uncertain BIGINT NOT NULL DEFAULT 0;
UPDATE outbox SET uncertain = 1 WHERE state = 'waiting' AND tries > 0;

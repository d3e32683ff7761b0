-- Cards that their platform keeps apart from the message have a row beside the files: no bytes, and `upload` is the platform's name for the
-- card. Rows of the outbox up to `whole_until` do not tell what such a card shows: an answer to a press showed it since.
ALTER TABLE outbox_files ADD COLUMN whole_until BIGINT NOT NULL DEFAULT 0;

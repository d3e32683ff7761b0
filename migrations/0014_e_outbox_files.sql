-- The bytes of files that go out, by the key of their post; they go when the post is sent or given up. `upload` is the platform's name for
-- them, once it has them.
CREATE TABLE outbox_files (
    key    TEXT  PRIMARY KEY,
    bytes  BYTEA NOT NULL,
    upload TEXT
);

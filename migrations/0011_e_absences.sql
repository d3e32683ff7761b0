-- People who are away, and who decides in their place: one row a person of an organisation. `person_key` and `deputy_key` are digests of
-- the organisation and the person.
CREATE TABLE absences (
    person_key BYTEA  PRIMARY KEY,
    deputy_key BYTEA  NOT NULL,
    until      BIGINT NOT NULL,
    body       TEXT   NOT NULL
);
CREATE INDEX absences_deputy ON absences (deputy_key, until);
CREATE INDEX absences_until ON absences (until);

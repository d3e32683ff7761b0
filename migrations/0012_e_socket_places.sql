-- Connections to platforms that limit how many an app may have: one row a connection, over all processes.
CREATE TABLE socket_places (
    app   TEXT   NOT NULL,
    place BIGINT NOT NULL,
    owner TEXT   NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (app, place)
);

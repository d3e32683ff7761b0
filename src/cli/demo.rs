//! The whole handshake on one machine, with a Lark tenant that we play ourselves.

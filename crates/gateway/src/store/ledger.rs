//! The SQL database.
//!
//! One SQL text for every database (see `migrations/`): `$n` marks, no boolean results, sums cast, JSON as TEXT.
//! The verbs are methods of [`Read`] and [`Tx`], one file a theme.

mod absences;
mod accept;
mod actions;
mod arg;
mod arrive;
mod audit;
mod backlog;
mod cards;
mod chat_log;
mod conn;
mod damage;
mod decisions;
mod events;
mod feedback;
mod facts;
mod file;
mod follow_ups;
mod file_inbox;
mod file_pool;
mod file_sql;
mod gates;
mod handle;
mod ids;
mod inbox;
mod inner;
mod lanes;
mod older_cards;
mod open;
mod outbox;
mod outbox_claim;
mod outgoing;
mod page;
mod marks;
mod pool;
mod postgres;
mod prune;
mod reactions;
mod recorded;
mod schema;
mod seal;
mod server_pool;
mod signals;
mod simulation;
mod sql;
mod sql_errors;
mod sqlite;
mod standing;
mod tail;
mod trail;
mod transaction;
mod turns;
mod wakeups;
mod write_queue;

pub use self::actions::ActionRecord;
pub use self::audit::{AuditCheck, AuditEntry, AuditHead, InvalidAuditHead, SealPart};
pub use self::backlog::Backlog;
pub use self::cards::card_key;
pub use self::chat_log::ChatEntry;
pub use self::events::{EventRow, event_id};
pub use self::feedback::FeedbackRow;
pub use self::follow_ups::reminder_keys;
pub use self::gates::GateRecord;
pub use self::handle::Ledger;
pub use self::inbox::{DamagedRow, InboxRow, InboxState};
pub(crate) use self::lanes::MAX_CRASHES;
pub use self::lanes::{Lease, Renewal};
pub use self::outbox::{NewOutbox, OutboxRow, outbox_key};
pub use self::outbox_claim::{Line, LineKind};
pub use self::outgoing::{OutgoingFile, PostState};
pub use self::page::{Cursor, InvalidCursor, ListQuery, Page};
pub use self::prune::PruneCounts;
pub use self::schema::SchemaState;
pub use self::signals::Signal;
pub use self::simulation::{SimulatedCommit, SimulatedOrder, SimulatedTurn};
pub use self::tail::{EventPlace, EventSpan, Tail};
pub use self::transaction::{Read, Tx};
pub use self::turns::TurnRow;

use super::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

//! One pending review in Redis: a hash that expires with the review.

use countersign_agent::domain::{Gate, GateId, LaneId, Millis, Outbound};
use redis::{Cmd, cmd};

use crate::store::StoreError;

/// The field that names the review.
pub(super) const ID: &str = "review_id";

/// Keeps the review, with its expiry in the same moment: `ttl field value …`.
const PUT: &str = "
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
";

/// Moves the expiry: `review_id expires_at ttl`. The lane may have opened the next review already.
const TOUCH: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' or redis.call('HGET', KEYS[1], 'review_id') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'expires_at', ARGV[2])
return redis.call('PEXPIRE', KEYS[1], ARGV[3])
";

/// Drops the review: `review_id`. The lane may have opened the next one already.
const REMOVE: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' or redis.call('HGET', KEYS[1], 'review_id') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
";

/// A change of what is kept of a lane's review.
#[derive(Debug)]
pub(in crate::store) enum ReviewChange {
    /// It was opened.
    Put {
        lane: LaneId,
        fields: Vec<(&'static str, String)>,
        ttl: i64,
    },
    /// It expires at another moment.
    Touch {
        lane: LaneId,
        review: GateId,
        expires_at: Millis,
        ttl: i64,
    },
    /// It was decided.
    Remove { lane: LaneId, review: GateId },
}

impl ReviewChange {
    /// `gate` was opened.
    pub(in crate::store) fn put(gate: &Gate, now: Millis) -> Result<Self, StoreError> {
        let (goal, plan) = match &gate.card {
            Outbound::PlanCard(card) => (
                card.goal.clone(),
                serde_json::to_string(&card.steps).map_err(|error| StoreError::Corrupt(error.to_string()))?,
            ),
            // Other gates are not about a plan.
            _ => (String::new(), String::new()),
        };
        Ok(Self::Put {
            lane: gate.lane_id.clone(),
            fields: vec![
                ("user_id", gate.requester.clone()),
                ("chat_id", gate.conversation.chat.clone()),
                ("run_id", gate.turn_id.to_string()),
                ("overall_goal_ui", goal),
                ("internal_plan", plan),
                ("created_at", gate.opened_at.rfc3339()),
                ("expires_at", gate.expires_at.rfc3339()),
                (ID, gate.id.to_string()),
            ],
            ttl: ttl(gate.expires_at, now),
        })
    }

    /// The card of `gate` was delivered.
    pub(in crate::store) fn touch(gate: &Gate, expires_at: Millis, now: Millis) -> Self {
        Self::Touch {
            lane: gate.lane_id.clone(),
            review: gate.id.clone(),
            expires_at,
            ttl: ttl(expires_at, now),
        }
    }

    /// `gate` was decided.
    pub(in crate::store) fn remove(gate: &Gate) -> Self {
        Self::Remove {
            lane: gate.lane_id.clone(),
            review: gate.id.clone(),
        }
    }

    /// What the metrics call it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Put { .. } => "put",
            Self::Touch { .. } => "touch",
            Self::Remove { .. } => "remove",
        }
    }

    /// The command; `key` is where a lane's review is kept.
    pub(super) fn command(&self, key: impl Fn(&LaneId) -> String) -> Cmd {
        match self {
            Self::Put { lane, fields, ttl } => {
                let mut put = eval(PUT, &key(lane));
                put.arg(*ttl);
                for (name, value) in fields {
                    put.arg(*name).arg(value);
                }
                put
            }
            Self::Touch {
                lane,
                review,
                expires_at,
                ttl,
            } => {
                let mut touch = eval(TOUCH, &key(lane));
                touch.arg(review.as_str()).arg(expires_at.rfc3339()).arg(*ttl);
                touch
            }
            Self::Remove { lane, review } => {
                let mut remove = eval(REMOVE, &key(lane));
                remove.arg(review.as_str());
                remove
            }
        }
    }
}

/// Milliseconds until `expires_at`; at least one, because Redis refuses none.
fn ttl(expires_at: Millis, now: Millis) -> i64 {
    expires_at.0.saturating_sub(now.0).max(1)
}

fn eval(script: &str, key: &str) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(script).arg(1).arg(key);
    command
}

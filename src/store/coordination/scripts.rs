//! What runs inside Redis, in one piece each. Sent with its text: a server that forgot its scripts needs no second try.
//!
//! The sentinel says `ready EPOCH STAMP` or `building EPOCH STAMP`. The stamp is the server's own run id and its count of
//! evicted keys, which only the server itself can compare: a copy of the data on another server, or in a server that was
//! started again from an older dump, has a sentinel with a stamp that is not its own, and one that evicted a key no longer has
//! its own either.

use redis::{Cmd, cmd};

/// Stamp of the server that runs the script; nil where it may not be asked.
const STAMP: &str = "
local function stamp()
  local server, stats = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'stats')
  if type(server) ~= 'string' or type(stats) ~= 'string' then return nil end
  local run, evicted = server:match('run_id:(%x+)'), stats:match('evicted_keys:(%d+)')
  return run and evicted and run .. '.' .. evicted
end
local function says(state, epoch)
  local own = stamp()
  return own and redis.call('GET', KEYS[#KEYS]) == state .. ' ' .. epoch .. ' ' .. own
end
";

/// Keeps a review unless a newer one of the same lane is there: `ttl created_at field value …`.
const PUT: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then redis.call('DEL', KEYS[1]) end
local there = redis.call('HGET', KEYS[1], 'created_at')
if there and there > ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
";

/// Prolongs or shortens this review: `review_id expires_at ttl`.
const TOUCH: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' or redis.call('HGET', KEYS[1], 'review_id') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'expires_at', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
";

/// Drops this review: `review_id`. The lane may have opened the next gate already.
const DROP: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' or redis.call('HGET', KEYS[1], 'review_id') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
";

/// Notes a review in its chat: `review_id until ttl epoch`. 1: this is the Redis of that epoch.
const NOTE: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then redis.call('DEL', KEYS[1]) end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
if #KEYS == 1 or says('ready', ARGV[4]) or says('building', ARGV[4]) then return 1 end
return 0
";

/// Is anything noted in the chat: `now epoch`. 1: yes. 0: no, and that is sure. -1: no, but something may have been lost.
const LOOK: &str = "
if redis.call('TYPE', KEYS[1]).ok == 'zset' and redis.call('ZCOUNT', KEYS[1], ARGV[1], '+inf') > 0 then return 1 end
if #KEYS == 2 and says('ready', ARGV[2]) then return 0 end
return -1
";

/// Renews the sentinel: `epoch ttl`. A write, which a full or demoted server refuses. 1: in force. 0: somebody rebuilds. -1: rebuild it.
const VERIFY: &str = "
local there = redis.call('GET', KEYS[1])
if there and there:sub(1, 9) == 'building ' then return 0 end
if not there or not says('ready', ARGV[1]) then return -1 end
redis.call('SET', KEYS[1], there, 'PX', ARGV[2])
return 1
";

/// Begins a rebuild: `epoch ttl`. 0: somebody else is at it. -1: the server may not be asked who it is.
const BEGIN: &str = "
local own = stamp()
if not own then return -1 end
local there = redis.call('GET', KEYS[1])
if there and there:sub(1, 9) == 'building ' then return 0 end
redis.call('SET', KEYS[1], 'building ' .. ARGV[1] .. ' ' .. own, 'PX', ARGV[2])
return 1
";

/// A rebuild goes on (`building`) or is done (`ready`): `state epoch ttl`. 0: what was put is lost again.
const ADVANCE: &str = "
if not says('building', ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. stamp(), 'PX', ARGV[3])
return 1
";

pub(super) fn put(key: &str, ttl: i64, created_at: &str, fields: &[(&str, &str)]) -> Cmd {
    let mut command = eval(PUT, &[key]);
    command.arg(ttl).arg(created_at);
    for (name, value) in fields {
        command.arg(*name).arg(*value);
    }
    command
}

pub(super) fn touch(key: &str, review: &str, expires_at: &str, ttl: i64) -> Cmd {
    let mut command = eval(TOUCH, &[key]);
    command.arg(review).arg(expires_at).arg(ttl);
    command
}

pub(super) fn drop(key: &str, review: &str) -> Cmd {
    let mut command = eval(DROP, &[key]);
    command.arg(review);
    command
}

pub(super) fn note(keys: &[&str], review: &str, until: i64, ttl: i64, epoch: &str) -> Cmd {
    let mut command = eval(NOTE, keys);
    command.arg(review).arg(until).arg(ttl).arg(epoch);
    command
}

pub(super) fn look(keys: &[&str], now: i64, epoch: &str) -> Cmd {
    let mut command = eval(LOOK, keys);
    command.arg(now).arg(epoch);
    command
}

pub(super) fn verify(key: &str, epoch: &str, ttl: i64) -> Cmd {
    let mut command = eval(VERIFY, &[key]);
    command.arg(epoch).arg(ttl);
    command
}

pub(super) fn begin(key: &str, epoch: &str, ttl: i64) -> Cmd {
    let mut command = eval(BEGIN, &[key]);
    command.arg(epoch).arg(ttl);
    command
}

pub(super) fn advance(key: &str, state: &str, epoch: &str, ttl: i64) -> Cmd {
    let mut command = eval(ADVANCE, &[key]);
    command.arg(state).arg(epoch).arg(ttl);
    command
}

fn eval(script: &str, keys: &[&str]) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(format!("{STAMP}{script}")).arg(keys.len()).arg(keys);
    command
}

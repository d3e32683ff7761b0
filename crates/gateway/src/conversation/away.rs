//! `/away` and `/back`: a person says who decides in their place, and until when.

#[cfg(test)]
mod tests;

use std::time::Duration;

use countersign_agent::domain::handshake::Right;
use countersign_agent::domain::{Absence, AwayProblem, ChannelKind, InboundMessage, Mention, Millis, Notice, console_person};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::json;
use unicode_normalization::UnicodeNormalization as _;

use crate::store::{AuditEntry, InboxRow, StoreError, Tx};

use super::rights::Rights;
use super::say;

const LONGEST: Duration = Duration::from_hours(366 * 24);

/// Whom an `/away` names, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AwayRequest {
    pub(super) deputy: String,
    /// The organisation that the platform names beside the deputy.
    pub(super) team: Option<String>,
    pub(super) until: Millis,
}

/// Reads what follows `/away`. `None` means nothing does: the sender asks how it stands.
///
/// Who is meant comes from the platform's mentions, never from text that looks like one. On the console, which has no mentions, it is the
/// first word.
pub(super) fn read(
    message: &InboundMessage,
    channel: ChannelKind,
    bot: &str,
    sender: &str,
    now: Millis,
) -> Option<Result<AwayRequest, AwayProblem>> {
    let said = message.unaddressed(bot);
    let (_, words) = said.command()?;
    let mut people: Vec<&Mention> = message.mentions.iter().filter(|mention| mention.id != bot).collect();
    people.dedup_by(|one, other| one.id == other.id);
    if people.is_empty() && words.is_empty() {
        return None;
    }
    let (deputy, team, words) = match (people.as_slice(), channel) {
        ([], ChannelKind::Console) => {
            let (name, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
            (console_person(name.trim_start_matches(['@', '＠'])), None, rest)
        }
        ([], _) => return Some(Err(AwayProblem::Nobody)),
        ([one], _) => (one.id.clone(), one.team.clone(), words),
        _ => return Some(Err(AwayProblem::Several)),
    };
    let who = match deputy.as_str() {
        "" => Err(AwayProblem::NotAPerson),
        id if id == sender => Err(AwayProblem::Oneself),
        id if channel.is_group(id) => Err(AwayProblem::NotAPerson),
        _ => Ok(()),
    };
    Some(who.and_then(|()| end(words, now)).map(|until| AwayRequest { deputy, team, until }))
}

/// The last moment of an absence that begins `now`: `until 2026-12-01` is the end of that day in UTC, `for 3d` is 72 hours from now.
fn end(words: &str, now: Millis) -> Result<Millis, AwayProblem> {
    let words = words.nfkc().flat_map(char::to_lowercase).collect::<String>();
    let words = words.trim().trim_end_matches(['.', '。', '!']).trim_end_matches("为止");
    let named = ["until", "till", "for", "直到", "至", "到"]
        .iter()
        .find_map(|name| words.strip_prefix(name));
    let said: String = named.unwrap_or(words).chars().filter(|c| !c.is_whitespace()).collect();
    let until = last_moment_of(&said).or_else(|| span(&said).map(|span| now.plus(span)));
    match until {
        None => Err(AwayProblem::NoEnd),
        Some(until) if until <= now => Err(AwayProblem::Over),
        Some(until) if until.since(now) > LONGEST => Err(AwayProblem::TooLong),
        Some(until) => Ok(until),
    }
}

/// The last moment of a day: `2026-12-01`, `2026/12/1`, `2026年12月1日`.
fn last_moment_of(day: &str) -> Option<Millis> {
    let day = day.strip_suffix('日').unwrap_or(day);
    let parts: Vec<&str> = day.split(['-', '/', '年', '月']).collect();
    let [year, month, day] = parts.as_slice() else { return None };
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    let date = Date::new(year, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    // The last days of the calendar have no morning after.
    let next = date.tomorrow().and_then(|next| next.to_zoned(TimeZone::UTC));
    Some(next.map_or(Millis::NEVER, |next| Millis(next.timestamp().as_millisecond() - 1)))
}

/// A number of days or hours: `3d`, `8 hours`, `3天`.
fn span(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at(unit);
    let hours = match unit {
        "d" | "day" | "days" | "天" | "日" => 24,
        "h" | "hour" | "hours" | "小时" | "个小时" => 1,
        _ => return None,
    };
    // Longer counts are too long, whatever they are.
    let count = if count.len() > 4 { 9999 } else { count.parse::<u64>().ok()? };
    Some(Duration::from_hours(count.checked_mul(hours)?))
}

fn number(digits: &str) -> Option<i16> {
    let plain = !digits.is_empty() && digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// May this person decide in another's place here: are they heard?
pub(super) fn hears(request: &AwayRequest, rights: &Rights, tenant: &str) -> Right {
    let teams: Vec<String> = request.team.iter().cloned().collect();
    if rights.inside(&teams, tenant) {
        rights.hears(&request.deputy)
    } else {
        Right::No
    }
}

/// The sender is away from now on, as they asked.
pub(super) async fn leave(tx: &mut Tx, row: &InboxRow, request: AwayRequest, now: Millis) -> Result<(), StoreError> {
    let AwayRequest { deputy, until, .. } = request;
    let absence = Absence {
        person: row.inbound.sender.clone(),
        deputy,
        since: now,
        until,
        teams: row.inbound.sender_teams.clone(),
    };
    let place = &row.inbound.conversation;
    tx.set_absence(place, &absence).await?;
    audit(tx, row, "away", &absence);
    say::tell_seldom(tx, row, standing(absence, true), now).await
}

pub(super) async fn come_back(tx: &mut Tx, row: &InboxRow, now: Millis) -> Result<(), StoreError> {
    let place = &row.inbound.conversation;
    let Some(absence) = tx.absence(place, &row.inbound.sender, now).await? else {
        return say::tell_seldom(tx, row, Notice::NotAway {}, now).await;
    };
    tx.end_absence(place, &absence.person).await?;
    audit(tx, row, "back", &absence);
    let deputy = absence.deputy;
    say::tell_seldom(tx, row, Notice::Back { deputy }, now).await
}

/// Whether the sender is away.
pub(super) async fn tell(tx: &mut Tx, row: &InboxRow, now: Millis) -> Result<(), StoreError> {
    let absence = tx.absence(&row.inbound.conversation, &row.inbound.sender, now).await?;
    let notice = absence.map_or(Notice::NotAway {}, |absence| standing(absence, false));
    say::tell_seldom(tx, row, notice, now).await
}

fn standing(absence: Absence, changed: bool) -> Notice {
    Notice::Away {
        deputy: absence.deputy,
        until: absence.until.rfc3339(),
        changed,
    }
}

fn audit(tx: &mut Tx, row: &InboxRow, kind: &'static str, absence: &Absence) {
    let place = &row.inbound.conversation;
    tx.audit(AuditEntry {
        kind,
        turn_id: None,
        gate_id: None,
        action_id: None,
        principal: Some(absence.person.clone()),
        details: json!({
            "channel": place.channel, "tenant": place.tenant, "chat": place.chat, "deputy": absence.deputy,
            "until": absence.until.rfc3339(), "via": "text", "event_id": row.inbound.event_key,
        }),
    });
}

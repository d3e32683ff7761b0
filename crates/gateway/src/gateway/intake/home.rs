//! Slack's Home tab: a picture of what waits for a person, drawn when they look and when they have pressed something there.

use std::time::Duration;

use countersign_agent::domain::{ChannelKind, Conversation};
use tokio::time::timeout;

use crate::channels::{BatchSizes, HomeCard, HomePage, HomeTask, home_view};
use crate::gateway::state::Gateway;

/// How long one picture may take, the platform's pace included.
const TIME: Duration = Duration::from_secs(30);
/// How long the picture after a press waits for the platform's rates. That after a look gives way before.
const PRESS_WAITS: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(super) struct Viewer {
    /// The workspace; it names no chat.
    pub(super) place: Conversation,
    pub(super) user: String,
    /// Workspaces that are named beside them.
    pub(super) teams: Vec<String>,
}

/// Draws the tab for a person who looks, unless too many look.
pub(super) async fn look(gateway: Gateway, viewer: Viewer) {
    let Some(_place) = gateway.home_place() else {
        gateway.warn_of(
            ChannelKind::Slack,
            "too many Home tabs are drawn at once; one is left as it is",
            None,
        );
        return;
    };
    show(&gateway, &viewer, None).await;
}

/// Draws the tab. After a press, `notice` stands above it and says what came of the press. What goes wrong is logged and not tried again: the tab shows what it showed, and
/// decides nothing by itself.
pub(super) async fn show(gateway: &Gateway, viewer: &Viewer, notice: Option<&str>) {
    if timeout(TIME, draw(gateway, viewer, notice)).await.is_err() {
        gateway.warn_of(ChannelKind::Slack, "a Home tab was not drawn in time", None);
    }
}

async fn draw(gateway: &Gateway, viewer: &Viewer, notice: Option<&str>) {
    let waiting = match gateway.conversations.waiting(&viewer.place, &viewer.user, &viewer.teams).await {
        Ok(waiting) => waiting,
        Err(error) => {
            gateway.warn_of(ChannelKind::Slack, "what waits for a person could not be read", Some(&error));
            return;
        }
    };
    let live = gateway.settings.current();
    let locale = |chat: &str| live.in_chat(ChannelKind::Slack, chat).locale;
    let cards = waiting.gates.iter().map(|gate| HomeCard {
        chat: &gate.place.chat,
        locale: locale(&gate.place.chat),
        goal: &gate.goal,
        card: &gate.card,
    });
    let tasks = waiting.tasks.iter().map(|task| HomeTask {
        chat: &task.place.chat,
        goal: &task.goal,
        state: task.state,
        undone: &task.undone,
    });
    let page = HomePage {
        notice,
        cards: cards.collect(),
        tasks: tasks.collect(),
        more: waiting.more,
    };
    let view = home_view(&gateway.templates, locale(""), &page);
    let waits = notice.map_or(BatchSizes::MAX_WAIT, |_| PRESS_WAITS);
    if let Err(error) = gateway.channels.slack.publish_home(&viewer.user, &view, waits).await {
        gateway.warn_of(ChannelKind::Slack, "a Home tab was not shown", Some(&error));
    }
}

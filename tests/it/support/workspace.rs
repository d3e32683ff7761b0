//! File tools on a folder of the test's own.

use countersign_agent::tools::Reach;
use std::path::Path;
use std::time::Duration;

use countersign::config::{Boot, LarkSecrets, SlackSecrets};
use countersign_agent::tools::Toolbox;

/// A configuration of which only the workspace matters.
pub(crate) fn boot(workspace: Option<&Path>) -> Boot {
    let blank = || String::new().into();
    Boot {
        bind: ([127, 0, 0, 1], 0).into(),
        webhooks: true,
        workers: true,
        max_body_bytes: 1 << 20,
        max_connections: 1024,
        shutdown_grace: Duration::from_secs(30),
        lark: LarkSecrets {
            base_url: String::new(),
            app_id: String::new(),
            app_secret: blank(),
            verification_token: blank(),
            encrypt_key: None,
        },
        slack: SlackSecrets {
            base_url: String::new(),
            signing_secret: blank(),
            previous_signing_secret: None,
            bot_token: blank(),
        },
        console_token: None,
        stores: countersign::config::Stores::embedded(blank()),
        retention: Duration::from_secs(86_400),
        workspace: workspace.map(Path::to_path_buf),
        web_fetch: false,
        run_bash: false,
        effects: [].into(),
        mcp_servers: Vec::new(),
        templates: None,
        log_json: false,
    }
}

/// The file tools of `folder`.
pub(crate) fn toolbox(folder: &Path) -> Toolbox {
    countersign::app::toolbox(&boot(Some(folder)), &Reach::default()).unwrap()
}

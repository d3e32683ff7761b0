//! Is the model's server there, and does it take the key? Its list of models is asked for: that costs nothing.

use countersign_agent::model::Remote;
use countersign_agent::model::{ModelLive, Provider};
use serde_json::Value;

use super::verdict::{Verdict, transport};

pub(super) async fn verdict(model: &ModelLive, http: reqwest::Client) -> Verdict {
    if model.provider == Provider::Demo {
        return Verdict::Good(String::from("the demo model is built in"));
    }
    let request = match Remote::catalogue(&http, model) {
        Ok(request) => request,
        Err(why) => return Verdict::Bad(why.to_owned()),
    };
    let answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) => return transport(&error),
    };
    match answer.status().as_u16() {
        status @ (401 | 403) => Verdict::Bad(format!("the server refuses the key (model.api_key): HTTP {status}")),
        // Not every server has such a list; but a base without its version (`/v1`) looks the same.
        status @ (404 | 405 | 501) => Verdict::Doubtful(format!(
            "something answers, but has no list of models (HTTP {status}): is model.base_url right? The key cannot be verified"
        )),
        200 => match answer.json::<Value>().await {
            Ok(list) => listed(&list, &model.name),
            Err(_) => Verdict::Doubtful(String::from(
                "something answers, but not with a list of models: is model.base_url right?",
            )),
        },
        status => Verdict::Bad(format!("the server answers HTTP {status}")),
    }
}

fn listed(list: &Value, name: &str) -> Verdict {
    let ids: Vec<&str> = list["data"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|model| model["id"].as_str())
        .collect();
    if ids.contains(&name) {
        Verdict::Good(format!("the server is there, takes the key and has {name:?}"))
    } else {
        Verdict::Doubtful(format!(
            "the server is there and takes the key, but {name:?} is not in its list of models"
        ))
    }
}

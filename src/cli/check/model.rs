//! Is the model's server there, and does it take the key? Its list of models is asked for: that costs nothing.

use countersign_agent::model::Remote;
use countersign_agent::model::{ModelLive, Provider};
use serde_json::Value;

use super::verdict::{CheckVerdict, transport};

pub(super) async fn verdict(model: &ModelLive, http: reqwest::Client) -> CheckVerdict {
    if model.provider == Provider::Demo {
        return CheckVerdict::Good(String::from("the demo model is built in"));
    }
    let request = match Remote::catalogue(&http, model) {
        Ok(request) => request,
        Err(why) => return CheckVerdict::Bad(why.to_owned()),
    };
    let answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) => return transport(&error),
    };
    match answer.status().as_u16() {
        status @ (401 | 403) => CheckVerdict::Bad(format!("the server refuses the key (model.api_key): HTTP {status}")),
        // Not every server has such a list; but a base without its version (`/v1`) looks the same.
        status @ (404 | 405 | 501) => CheckVerdict::Doubtful(format!(
            "something answers, but has no list of models (HTTP {status}): is model.base_url right? The key cannot be verified"
        )),
        200 => match answer.json::<Value>().await {
            Ok(list) => listed(&list, &model.name),
            Err(_) => CheckVerdict::Doubtful(String::from(
                "something answers, but not with a list of models: is model.base_url right?",
            )),
        },
        status => CheckVerdict::Bad(format!("the server answers HTTP {status}")),
    }
}

fn listed(list: &Value, name: &str) -> CheckVerdict {
    let ids: Vec<&str> = list["data"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|model| model["id"].as_str())
        .collect();
    if ids.contains(&name) {
        CheckVerdict::Good(format!("the server is there, takes the key and has {name:?}"))
    } else {
        CheckVerdict::Doubtful(format!(
            "the server is there and takes the key, but {name:?} is not in its list of models"
        ))
    }
}

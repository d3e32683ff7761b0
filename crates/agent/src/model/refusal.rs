//! What a server's error means for us. Pure.

use serde_json::Value;

use super::manner::is_about_output;
use super::retry::{Failure, Objection};
use super::told_wait;
use crate::domain::foreign_json;

/// How servers say that the prompt is longer than the model reads: OpenAI, Azure, vLLM, SGLang, llama.cpp, LM Studio, DeepSeek, Qwen, Kimi,
/// GLM, Mistral, Gemini, OpenRouter, Bedrock, Anthropic. Lower case.
const TOO_LONG: [&str; 14] = [
    "context length",
    "context window",
    "context size",
    "context limit",
    "context_length",
    "exceed_context_size",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "range of input length",
    "exceeds max length",
    "model token limit",
    "input token count",
    "reduce the length of the messages",
];

/// Reads an error answer: `status`, its body, and the wait that its headers ask for.
pub(super) fn by_status(status: u16, body: &[u8], retry_after: Option<std::time::Duration>) -> Failure {
    // Servers that know no such path say so in plain text; a web page says nothing.
    let plain = || std::str::from_utf8(body).ok().filter(|text| !text.trim_start().starts_with('<'));
    let body: Value = foreign_json::read(body).unwrap_or_else(|_| plain().map_or(Value::Null, Value::from));
    let retry_after = told_wait::in_error(&body).max(retry_after);
    let error = error_of(&body);
    let code = code(error);
    let words = words(error);
    meaning(status, code.as_deref(), &words).unwrap_or_else(|| {
        let failure = Failure::Status {
            status,
            code,
            said: said(error),
            retry_after,
        };
        objection(status, words, failure)
    })
}

/// What servers say against a request, some of them with the status of a failure of their own.
fn objection(status: u16, words: String, failure: Failure) -> Failure {
    if !matches!(status, 400 | 422 | 500) || words.trim().is_empty() {
        return failure;
    }
    Failure::Objection(Box::new(Objection { status, words, failure }))
}

/// An error object that came under a success status, alone or in the middle of a stream. `None` means it is no error.
pub(super) fn inside(answer: &Value) -> Option<Failure> {
    let named = answer.get("type").and_then(Value::as_str) == Some("error");
    let error = answer.get("error");
    let error = error.filter(|error| error.is_object() || error.as_str().is_some_and(|text| !text.is_empty()));
    if !named && error.is_none() {
        return None;
    }
    let error = error_of(answer);
    let code = code(error);
    let kind = error.get("type").and_then(Value::as_str).unwrap_or_default();
    let number = error
        .get("code")
        .and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    let number = number
        .or_else(|| error.get("status").and_then(Value::as_u64))
        .and_then(|number| u16::try_from(number).ok());
    let status = match number.filter(|number| (400..600).contains(number)) {
        Some(number) => number,
        None => match code.as_deref().unwrap_or(kind) {
            "invalid_request_error" | "invalid_prompt" | "context_length_exceeded" => 400,
            "authentication_error" | "invalid_api_key" => 401,
            "permission_error" => 403,
            "not_found_error" | "model_not_found" => 404,
            "request_too_large" => 413,
            "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
            "overloaded_error" => 529,
            // A server that took the request and then failed: taken for a passing trouble of its own.
            _ => 500,
        },
    };
    let words = words(error);
    Some(meaning(status, code.as_deref(), &words).unwrap_or_else(|| {
        let failure = Failure::Status {
            status,
            code,
            said: said(error),
            retry_after: told_wait::in_error(answer),
        };
        objection(status, words, failure)
    }))
}

/// The meanings that no status tells.
fn meaning(status: u16, code: Option<&str>, words: &str) -> Option<Failure> {
    let about = |part: &str| words.contains(part) || code.is_some_and(|code| code.contains(part));
    match status {
        413 => Some(Failure::TooLong),
        400 | 422 if about("content_filter") || about("content_policy_violation") => Some(Failure::Filtered),
        // The limit of the answer does not fit beside the prompt.
        400 | 422 if is_about_output(words) && about("too large") => None,
        400 | 422 if TOO_LONG.iter().any(|part| about(part)) => Some(Failure::TooLong),
        400 | 422 if is_too_long(words) => Some(Failure::TooLong),
        // llama.cpp answered so for years.
        500 if TOO_LONG.iter().any(|part| about(part)) => Some(Failure::TooLong),
        _ => None,
    }
}

/// Other words for the same: a number of tokens or a length, and that it is too much. One more fold costs little.
fn is_too_long(words: &str) -> bool {
    let about = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    // The limit of the answer, and lists and names that are too long, are no matter of the prompt.
    let answer = is_about_output(words) && !about(&["prompt", "input"]);
    let other = answer || about(&["tool", "function", "array too long"]);
    let number = words.contains(|c: char| c.is_ascii_digit());
    number
        && !other
        && about(&["token", "length"])
        && about(&["exceed", "maximum", "too long", "too many", "limit", "must be <=", "must be less"])
}

/// `{"error": {…}}`, or the error itself.
fn error_of(body: &Value) -> &Value {
    body.get("error").filter(|error| error.is_object()).unwrap_or(body)
}

/// All that the error says, in lower case. FastAPI servers have their words in `detail`, some (Ollama's own API) in `error` itself.
fn words(error: &Value) -> String {
    let parts = ["message", "detail", "error", "type", "param"]
        .iter()
        .filter_map(|name| error.get(*name));
    let parts: Vec<String> = error
        .as_str()
        .map(Value::from)
        .iter()
        .chain(parts)
        .map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned))
        .collect();
    // What lies behind a proxy is no matter of streaming.
    parts.join("\n").to_lowercase().replace("upstream", "")
}

/// What the error says to people.
fn said(error: &Value) -> Option<String> {
    let told = |name: &&str| error.get(name).and_then(Value::as_str);
    let text = error.as_str().or_else(|| ["message", "detail", "error"].iter().find_map(told))?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// The short code of an error, if it is one that cannot carry anything else: lower-case letters, digits and
/// underscores, 40 at most.
fn code(error: &Value) -> Option<String> {
    ["code", "type"].iter().find_map(|name| {
        let code = match error.get(name)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        let harmless = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        (!code.is_empty() && code.len() <= 40 && code.chars().all(harmless)).then_some(code)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(status: u16, body: &Value) -> Failure {
        by_status(status, body.to_string().as_bytes(), None)
    }

    /// F-L7: how common servers say that the prompt is too long.
    #[test]
    fn a_prompt_that_is_too_long() {
        for (status, body) in [
            (
                400,
                json!({"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", "type": "invalid_request_error", "code": "context_length_exceeded"}}),
            ),
            (
                400,
                json!({"object": "error", "message": "This model's maximum context length is 4096 tokens.", "type": "BadRequestError", "code": 400}),
            ),
            (
                400,
                json!({"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error"}}),
            ),
            (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"}}),
            ),
            (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"}}),
            ),
            (
                400,
                json!({"error": {"message": "Range of input length should be [1, 30720]", "code": "invalid_parameter_error"}}),
            ),
            (
                400,
                json!({"error": {"message": "Invalid request: Your request exceeded model token limit: 8192", "type": "invalid_request_error"}}),
            ),
            (
                400,
                json!({"error": {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}}),
            ),
            (
                400,
                json!({"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}),
            ),
            (
                400,
                json!({"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is 131072 but the request contains 140000 tokens."}),
            ),
            (
                400,
                json!({"error": {"code": "model_max_prompt_tokens_exceeded", "message": "prompt token count of 70000 exceeds the limit of 64000"}}),
            ),
            (
                422,
                json!({"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 512 `max_new_tokens`", "error_type": "validation"}),
            ),
            (400, json!({"error": {"message": "Too many tokens in the messages: 9000"}})),
            (
                413,
                json!({"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
            ),
            (413, Value::Null),
        ] {
            assert_eq!(read(status, &body), Failure::TooLong, "{body}");
        }
        for (status, body) in [
            (401, json!({"error": {"message": "context length"}})),
            (429, json!({"error": {"message": "Too many tokens, context window of your tier"}})),
            (400, json!({"error": {"message": "max_tokens is too large"}})),
            (
                400,
                json!({"error": {"message": "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-5"}}),
            ),
            (
                400,
                json!({"error": {"message": "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 8192 tokens and your request has 500 input tokens (32000 > 8192 - 500)."}}),
            ),
            (
                400,
                json!({"error": {"message": "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 130 instead."}}),
            ),
        ] {
            assert!(
                matches!(read(status, &body), Failure::Status { .. } | Failure::Objection(_)),
                "{body}"
            );
        }
    }

    /// design: interface §6, what a server says against a request is kept whole, in lower case, with the refusal that it is otherwise.
    #[test]
    fn objections_keep_their_words() {
        let fastapi = json!({"detail": [{"loc": ["body", "stream_options"], "msg": "Extra fields"}], "code": "Bearer sk-1"});
        let Failure::Objection(objection) = read(422, &fastapi) else {
            panic!()
        };
        assert_eq!((objection.status, &objection.failure), (422, &status(422, None)));
        assert!(objection.words.contains(r#""stream_options""#) && objection.words.contains("extra fields"));
        let Failure::Objection(objection) = read(400, &json!("Bad Tools")) else {
            panic!()
        };
        assert_eq!(
            (objection.words.trim(), objection.failure),
            ("bad tools", status(400, Some("Bad Tools")))
        );
        assert_eq!(read(400, &json!({})), status(400, None));
    }

    fn status(status: u16, said: Option<&str>) -> Failure {
        Failure::Status {
            status,
            code: None,
            said: said.map(str::to_owned),
            retry_after: None,
        }
    }

    /// design: an error inside a success means what it would have meant as a status.
    #[test]
    fn errors_inside_a_success() {
        let status = |body: Value| match inside(&body) {
            Some(Failure::Status { status, .. }) => status,
            Some(Failure::Objection(objection)) => objection.status,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            status(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})),
            529
        );
        assert_eq!(status(json!({"error": {"code": 429, "message": "x"}, "choices": []})), 429);
        assert_eq!(status(json!({"error": {"type": "authentication_error"}})), 401);
        assert_eq!(status(json!({"error": "something"})), 500);
        assert_eq!(
            inside(&json!({"error": {"code": "context_length_exceeded", "message": ""}})),
            Some(Failure::TooLong)
        );
        let filter = json!({"error": {"code": "content_filter", "message": "", "status": 400}});
        assert_eq!(inside(&filter), Some(Failure::Filtered));
        assert_eq!(inside(&json!({"choices": [], "error": null})), None);
    }
}

//! A waiting call with the arguments of a person instead of the model's.

use super::drive::Engine;
use crate::domain::CallDraft;
use crate::reducer;

impl Engine {
    /// The call of `tool` with these arguments, one JSON object. What may refuse a person's arguments is asked here; a rule that forbids the call is
    /// asked once more when the call is sent.
    ///
    /// # Errors
    /// What is to be mended: they are held to the schema that the model's are held to.
    pub async fn draft(&self, tool: &str, arguments: &str) -> Result<CallDraft, String> {
        let specs = self.tools.specs();
        let spec = specs.iter().find(|spec| spec.name == tool);
        let spec = spec.ok_or_else(|| format!("{tool} is not there now, so its arguments cannot be checked"))?;
        let (arguments, justification) = reducer::redraft(spec, arguments)?;
        let (base, preview) = self.look_ahead(tool, &arguments).await;
        Ok(CallDraft {
            arguments,
            justification,
            preview,
            base,
        })
    }
}

//! The Home tab of the app.

use serde_json::{Value, json};

use super::method::Method;
use super::{BatchSizes, DeliveryError, SlackClient};

impl SlackClient {
    /// Shows `user` this Home tab from now on. See [`crate::channels::home_view`].
    ///
    /// # Errors
    /// See [`DeliveryError`]; it is not tried again.
    pub async fn publish_home(&self, user: &str, view: &Value) -> Result<(), DeliveryError> {
        let body = json!({"user_id": user, "view": view});
        self.paced(Method::PublishView, "", &body, BatchSizes::MAX_WAIT).await?;
        Ok(())
    }
}

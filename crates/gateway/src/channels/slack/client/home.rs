//! The Home tab of the app.

use std::time::Duration;

use serde_json::{Value, json};

use super::method::Method;
use super::{DeliveryError, SlackClient};

impl SlackClient {
    /// Shows `user` this Home tab from now on. See [`crate::channels::home_view`]. It waits for the platform's rates, for the time `at_most`.
    ///
    /// # Errors
    /// See [`DeliveryError`]; it is not tried again.
    pub async fn publish_home(&self, user: &str, view: &Value, at_most: Duration) -> Result<(), DeliveryError> {
        let body = json!({"user_id": user, "view": view});
        self.paced(Method::PublishView, "", &body, at_most).await?;
        Ok(())
    }
}

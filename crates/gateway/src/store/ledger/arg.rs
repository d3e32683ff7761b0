//! Values that statements are given.

use std::borrow::Cow;

use countersign_agent::domain::{ActionId, GateId, LaneId, Millis, TurnId};

/// A value that a statement is given. A null has the type of its column: PostgreSQL refuses another one.
#[derive(Debug)]
pub(super) enum Arg {
    /// BIGINT.
    Int(Option<i64>),
    /// TEXT.
    Text(Option<String>),
    /// BYTEA.
    Bytes(Option<Vec<u8>>),
}

/// A type whose values a statement can be given.
pub(super) trait IntoArg {
    /// The null of the column's type.
    const NULL: Arg;
    fn into_arg(self) -> Arg;
}

impl<T: IntoArg> IntoArg for Option<T> {
    const NULL: Arg = T::NULL;
    fn into_arg(self) -> Arg {
        self.map_or(Self::NULL, T::into_arg)
    }
}

/// How types are given to statements.
macro_rules! given {
    ($($type:ty: $arg:ident($value:ident => $given:expr);)*) => {$(
        impl IntoArg for $type {
            const NULL: Arg = Arg::$arg(None);
            fn into_arg(self) -> Arg {
                let $value = self;
                Arg::$arg(Some($given))
            }
        }
    )*};
}

given! {
    i64: Int(number => number);
    Millis: Int(at => at.0);
    u32: Int(count => i64::from(count));
    bool: Int(flag => i64::from(flag));
    String: Text(text => text);
    &String: Text(text => text.clone());
    &str: Text(text => text.to_owned());
    Cow<'_, str>: Text(text => text.into_owned());
    Vec<u8>: Bytes(bytes => bytes);
    &[u8]: Bytes(bytes => bytes.to_vec());
}

/// Ids are TEXT.
macro_rules! given_ids {
    ($($id:ty),*) => {$(
        given! { &$id: Text(id => id.as_str().to_owned()); }
    )*};
}

given_ids!(ActionId, GateId, LaneId, TurnId);

/// The values of a statement: the first is `$1`.
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::store::ledger::arg::IntoArg::into_arg($value)),*]
    };
}
pub(super) use args;

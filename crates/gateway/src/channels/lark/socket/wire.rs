//! The frames of the long connection: protobuf, package `pbbp2`, proto2. Required members are written also when they are zero.

use prost::Message as _;

use crate::channels::socket::Frame as SocketFrame;

/// A member of a frame's head.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Header {
    #[prost(string, required, tag = "1")]
    pub(super) key: String,
    #[prost(string, required, tag = "2")]
    pub(super) value: String,
}

/// One binary message of the connection.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Frame {
    #[prost(uint64, required, tag = "1")]
    pub(super) seq_id: u64,
    #[prost(uint64, required, tag = "2")]
    pub(super) log_id: u64,
    #[prost(int32, required, tag = "3")]
    pub(super) service: i32,
    #[prost(int32, required, tag = "4")]
    pub(super) method: i32,
    #[prost(message, repeated, tag = "5")]
    pub(super) headers: Vec<Header>,
    #[prost(string, optional, tag = "6")]
    pub(super) payload_encoding: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub(super) payload_type: Option<String>,
    #[prost(bytes = "vec", optional, tag = "8")]
    pub(super) payload: Option<Vec<u8>>,
    #[prost(string, optional, tag = "9")]
    pub(super) log_id_new: Option<String>,
}

/// `method` of pings and pongs.
pub(super) const CONTROL: i32 = 0;
/// `method` of events.
pub(super) const DATA: i32 = 1;

impl Frame {
    /// The question whether the platform is there.
    pub(super) fn ping(service: i32) -> Self {
        Self {
            service,
            method: CONTROL,
            headers: vec![Header {
                key: String::from("type"),
                value: String::from("ping"),
            }],
            ..Self::default()
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        Self::decode(bytes).ok()
    }

    pub(super) fn write(&self) -> SocketFrame {
        SocketFrame::Binary(self.encode_to_vec())
    }

    /// The first member of the head with this name.
    pub(super) fn header(&self, key: &str) -> Option<&str> {
        let found = self.headers.iter().find(|header| header.key == key);
        found.map(|header| header.value.as_str())
    }

    /// A member of the head that counts something.
    pub(super) fn count(&self, key: &str) -> Option<usize> {
        self.header(key)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// reach §2.2: required members are on the wire when they are zero, since the platform's decoder insists.
    #[test]
    fn a_ping_has_its_zeros() {
        let SocketFrame::Binary(bytes) = Frame::ping(7).write() else {
            panic!("text");
        };
        assert_eq!(
            bytes,
            [
                0x08, 0, 0x10, 0, 0x18, 7, 0x20, 0, 0x2a, 12, 0x0a, 4, b't', b'y', b'p', b'e', 0x12, 4, b'p', b'i', b'n', b'g'
            ]
        );
        assert_eq!(Frame::read(&bytes), Some(Frame::ping(7)));
        assert_eq!(Frame::read(&bytes[..bytes.len() - 1]), None);
    }
}

//! Frames of Lark's long connection: the protobuf messages `Frame` and `Header` of package `pbbp2`, written and read by hand.
//!
//! The gateway has a codec of its own, so that each checks the other.

use std::collections::BTreeSet;

/// One frame. The four numbers are required: they are written when they are zero, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) seq_id: u64,
    pub(super) log_id: u64,
    pub(super) service: i32,
    /// 0: control, 1: data.
    pub(super) method: i32,
    pub(super) headers: Vec<(String, String)>,
    pub(super) payload_encoding: Option<String>,
    pub(super) payload_type: Option<String>,
    pub(super) payload: Option<Vec<u8>>,
    pub(super) log_id_new: Option<String>,
}

impl Frame {
    /// The value of the first header of this name.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| known == name)?;
        Some(value)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_number(&mut out, 1, self.seq_id);
        write_number(&mut out, 2, self.log_id);
        write_number(&mut out, 3, i64::from(self.service).cast_unsigned());
        write_number(&mut out, 4, i64::from(self.method).cast_unsigned());
        for (name, value) in &self.headers {
            let mut header = Vec::new();
            write_bytes(&mut header, 1, name.as_bytes());
            write_bytes(&mut header, 2, value.as_bytes());
            write_bytes(&mut out, 5, &header);
        }
        let text = |text: &Option<String>| text.clone().map(String::into_bytes);
        let rest = [
            (6, text(&self.payload_encoding)),
            (7, text(&self.payload_type)),
            (8, self.payload.clone()),
            (9, text(&self.log_id_new)),
        ];
        for (field, bytes) in rest {
            if let Some(bytes) = bytes {
                write_bytes(&mut out, field, &bytes);
            }
        }
        out
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// What is wrong with the bytes: a required field is missing, a field is there twice, is unknown or has another type.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut frame = Self::default();
        let mut seen = BTreeSet::new();
        for (number, field) in fields(bytes)? {
            if !seen.insert(number) && number != 5 {
                return Err(format!("a frame with its field {number} twice"));
            }
            match (number, field) {
                (1, Field::Number(value)) => frame.seq_id = value,
                (2, Field::Number(value)) => frame.log_id = value,
                (3, Field::Number(value)) => frame.service = int32(value)?,
                (4, Field::Number(value)) => frame.method = int32(value)?,
                (5, Field::Bytes(bytes)) => frame.headers.push(header(bytes)?),
                (6, Field::Bytes(bytes)) => frame.payload_encoding = Some(text(bytes)?),
                (7, Field::Bytes(bytes)) => frame.payload_type = Some(text(bytes)?),
                (8, Field::Bytes(bytes)) => frame.payload = Some(bytes.to_vec()),
                (9, Field::Bytes(bytes)) => frame.log_id_new = Some(text(bytes)?),
                _ => return Err(format!("a frame with a field {number} that is unknown or of another type")),
            }
        }
        match (1..=4).find(|number| !seen.contains(number)) {
            Some(missing) => Err(format!("a frame without its required field {missing}")),
            None => Ok(frame),
        }
    }
}

/// A field's value, as the wire tells the two kinds apart that frames have.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn fields(mut rest: &[u8]) -> Result<Vec<(u64, Field<'_>)>, String> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut rest)?),
            2 => {
                let length = usize::try_from(varint(&mut rest)?).unwrap_or(usize::MAX);
                let (bytes, after) = rest.split_at_checked(length).ok_or("a field that is longer than its message")?;
                rest = after;
                Field::Bytes(bytes)
            }
            other => return Err(format!("a field of wire type {other}")),
        };
        found.push((tag >> 3, field));
    }
    Ok(found)
}

fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or("a number without its end")?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(String::from("a number of more than ten bytes"))
}

fn int32(value: u64) -> Result<i32, String> {
    i32::try_from(value.cast_signed()).map_err(|_| format!("{value} is no int32"))
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| String::from("a text that is not UTF-8"))
}

fn header(bytes: &[u8]) -> Result<(String, String), String> {
    match fields(bytes)?.as_slice() {
        [(1, Field::Bytes(name)), (2, Field::Bytes(value))] => Ok((text(name)?, text(value)?)),
        _ => Err(String::from("a header that is not one key and one value")),
    }
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn write_number(out: &mut Vec<u8>, field: u64, value: u64) {
    write_varint(out, field << 3);
    write_varint(out, value);
}

fn write_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    write_varint(out, field << 3 | 2);
    write_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// demo: the bytes are those of protobuf: required zeros are written, a negative number takes ten bytes.
    #[test]
    fn the_bytes_are_protobufs() {
        let ping = Frame {
            service: 300,
            headers: vec![("type".to_owned(), "ping".to_owned())],
            ..Frame::default()
        };
        let bytes = b"\x08\x00\x10\x00\x18\xac\x02\x20\x00\x2a\x0c\x0a\x04type\x12\x04ping";
        assert_eq!(ping.encode(), bytes);
        assert_eq!(Frame::decode(bytes).unwrap(), ping);
        let full = Frame {
            seq_id: u64::MAX,
            log_id: 1 << 40,
            service: -1,
            method: 1,
            headers: vec![("a".to_owned(), String::new()), ("a".to_owned(), "b".repeat(200))],
            payload_encoding: Some("e".to_owned()),
            payload_type: Some("t".to_owned()),
            payload: Some(vec![0, 255]),
            log_id_new: Some("n".to_owned()),
        };
        let bytes = full.encode();
        assert_eq!(bytes[..11], [0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        assert_eq!(Frame::decode(&bytes).unwrap(), full);
        // Any order of the fields will do.
        let turned = b"\x20\x01\x18\x00\x10\x00\x08\x07";
        assert_eq!(Frame::decode(turned).unwrap().seq_id, 7);
    }

    /// demo: what breaks a rule of the frame is told, and no byte of it is guessed.
    #[test]
    fn what_is_no_frame_is_told() {
        for (bytes, told) in [
            (&b""[..], "required field 1"),
            (b"\x08\x00\x10\x00\x18\x01", "required field 4"),
            (b"\x08\x00\x10\x00\x18\x01\x20", "without its end"),
            (b"\x08\x00\x08\x00\x10\x00\x18\x01\x20\x00", "field 1 twice"),
            (b"\x08\x00\x10\x00\x18\x01\x20\x00\x2a\x06\x0a\x04type", "one key and one value"),
            (b"\x08\x00\x10\x00\x18\x01\x20\x00\x42\x05ab", "longer than its message"),
            (b"\x08\x00\x10\x00\x18\x01\x20\x00\x50\x00", "unknown"),
            (b"\x08\x00\x10\x00\x1a\x00\x20\x00", "of another type"),
            (b"\x0d\x00\x00\x00\x00", "wire type 5"),
            (b"\x08\x00\x10\x00\x18\x80\x80\x80\x80\x80\x40\x20\x00", "no int32"),
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "more than ten bytes"),
            (b"\x08\x00\x10\x00\x18\x01\x20\x00\x3a\x01\xff", "not UTF-8"),
        ] {
            let problem = Frame::decode(bytes).unwrap_err();
            assert!(problem.contains(told), "{problem}");
        }
    }
}

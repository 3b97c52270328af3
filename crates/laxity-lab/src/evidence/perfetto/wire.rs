//! Protocol buffers, as far as a trace needs them: varints, strings and nested messages, appended to bytes.

/// A message under construction.
#[derive(Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

const VARINT: u32 = 0;
const LENGTH_DELIMITED: u32 = 2;

impl Message {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    #[inline]
    fn tag(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    /// An unsigned number, or an enumerator.
    #[inline]
    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// Text.
    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.tag(field, LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value.as_bytes());
    }

    /// A message within this one. Its length is known only afterwards: one byte is kept for it, which is enough for most.
    #[inline]
    pub(super) fn nested(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.tag(field, LENGTH_DELIMITED);
        let length_at = self.bytes.len();
        self.bytes.push(0);
        fill(self);
        let length = self.bytes.len() - length_at - 1;
        if length < 0x80 {
            self.bytes[length_at] = length as u8;
        } else {
            let mut prefix = Self::default();
            prefix.varint(length as u64);
            self.bytes.splice(length_at..=length_at, prefix.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_text_are_encoded_as_the_format_says() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.nested(3, |inner| inner.number(1, 150));
        let expected = b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01";
        assert_eq!(message.into_bytes(), expected);
    }

    #[test]
    fn a_long_message_gets_a_long_length() {
        let mut message = Message::default();
        let long = "x".repeat(200);
        message.nested(1, |inner| inner.text(1, &long));
        let bytes = message.into_bytes();
        assert_eq!(bytes[..6], [0x0a, 0xcb, 0x01, 0x0a, 0xc8, 0x01]);
        assert_eq!(bytes.len(), 206);
    }
}

//! Frames that are not sealed: a checksum finds what the way has damaged, and nothing else.

use crc::{CRC_32_ISCSI, Crc, Table};

use super::body::Body;
use super::layout::{CHECKSUM, Frame, Header, Malformed, NoRoom, begin};

/// CRC-32C over header and body.
static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// Writes a frame with a checksum, and says how long it is.
///
/// # Errors
///
/// There is no room for it.
pub fn checked(body: &Body<'_>, out: &mut [u8]) -> Result<usize, NoRoom> {
    let header = Header {
        kind: body.kind(),
        session: None,
        counter: 0,
    };
    let rest = begin(header, body.length(), out)?;
    let length = body.length();
    body.write(&mut rest[..length]);
    let end = super::HEADER + length;
    let checksum = CRC.checksum(&out[..end]).to_be_bytes();
    out[end..end + CHECKSUM].copy_from_slice(&checksum);
    Ok(end + CHECKSUM)
}

/// What is in a frame with a checksum. One that is sealed is not opened by this, and is malformed: whoever expects a checksum has agreed on no keys.
///
/// # Errors
///
/// It is damaged, or nothing that [`checked`] would have written.
pub fn check<'a>(frame: &Frame<'a>) -> Result<Body<'a>, Malformed> {
    if frame.header.session.is_some() {
        return Err(Malformed::Field("the session of what is not sealed"));
    }
    let (covered, trailer) = frame.bytes().split_at(frame.bytes().len() - CHECKSUM);
    if CRC.checksum(covered).to_be_bytes() != *trailer {
        return Err(Malformed::Checksum);
    }
    Body::parse(frame.header.kind, frame.body())
}

//! The two messages by which hosts agree on keys. What is in them beside Noise's own is what a receiver must know before it spends anything on them.

use core::num::NonZeroU32;

use zerocopy::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout::Malformed;

/// Bytes of the code by which who knows no key of the receiver's is told apart before anything is computed: half of HMAC-SHA256.
pub const MAC: usize = 16;

/// Noise's first message of the pattern IK: a key for once (32), the sender's key sealed (48), a stamp sealed (24).
const FIRST: usize = 32 + 48 + 24;
/// And the second one: a key for once (32), what became of it sealed (32).
const ANSWER: usize = 32 + 32;

/// How frames are sealed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Cipher {
    /// AES-256-GCM: the faster one where the processor has instructions for it.
    #[default]
    AesGcm = 1,
    /// ChaCha20-Poly1305: the faster one where it has not.
    ChaChaPoly = 2,
}

/// The first message of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct First {
    /// By which number who sends it will know the session.
    pub session: NonZeroU32,
    /// How frames will be sealed.
    pub cipher: Cipher,
    /// Noise's message.
    pub noise: [u8; FIRST],
    /// The code over all that is before it, keyed by the receiver's public key.
    pub mac: [u8; MAC],
}

/// The answer to a first message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// By which number who sends it will know the session.
    pub session: NonZeroU32,
    /// The number of whoever began.
    pub to: NonZeroU32,
    /// Noise's message.
    pub noise: [u8; ANSWER],
    /// The code over all that is before it, keyed by the receiver's public key.
    pub mac: [u8; MAC],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct FirstLayout {
    session: U32,
    cipher: u8,
    zero: [u8; 3],
    noise: [u8; FIRST],
    mac: [u8; MAC],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct AnswerLayout {
    session: U32,
    to: U32,
    noise: [u8; ANSWER],
    mac: [u8; MAC],
}

/// Exactly so many bytes.
fn exactly<T>(bytes: &[u8]) -> Result<&T, Malformed>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned,
{
    let (layout, rest) = T::ref_from_prefix(bytes).map_err(|_| Malformed::Short)?;
    if !rest.is_empty() {
        return Err(Malformed::Long);
    }
    Ok(layout)
}

fn number(number: U32) -> Result<NonZeroU32, Malformed> {
    NonZeroU32::new(number.get()).ok_or(Malformed::Field("the number of a session"))
}

impl First {
    /// Bytes of its body.
    pub const LENGTH: usize = size_of::<FirstLayout>();

    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let layout: &FirstLayout = exactly(body)?;
        let cipher = match layout.cipher {
            1 => Cipher::AesGcm,
            2 => Cipher::ChaChaPoly,
            _ => return Err(Malformed::Field("a cipher")),
        };
        if layout.zero != [0; 3] {
            return Err(Malformed::Field("what is to be zero"));
        }
        Ok(Self {
            session: number(layout.session)?,
            cipher,
            noise: layout.noise,
            mac: layout.mac,
        })
    }

    pub(super) fn write(&self, out: &mut [u8]) {
        let layout = FirstLayout {
            session: self.session.get().into(),
            cipher: self.cipher as u8,
            zero: [0; 3],
            noise: self.noise,
            mac: self.mac,
        };
        out.copy_from_slice(layout.as_bytes());
    }

    /// What is before Noise's message: both sides mix it in, so that it cannot be changed on the way.
    pub(in crate::channels) fn clear(&self) -> [u8; 8] {
        let mut clear = [0; 8];
        clear[..4].copy_from_slice(&self.session.get().to_be_bytes());
        clear[4] = self.cipher as u8;
        clear
    }
}

impl Answer {
    /// Bytes of its body.
    pub const LENGTH: usize = size_of::<AnswerLayout>();

    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let layout: &AnswerLayout = exactly(body)?;
        Ok(Self {
            session: number(layout.session)?,
            to: number(layout.to)?,
            noise: layout.noise,
            mac: layout.mac,
        })
    }

    pub(super) fn write(&self, out: &mut [u8]) {
        let layout = AnswerLayout {
            session: self.session.get().into(),
            to: self.to.get().into(),
            noise: self.noise,
            mac: self.mac,
        };
        out.copy_from_slice(layout.as_bytes());
    }

    /// What is before Noise's message.
    pub(in crate::channels) fn clear(&self) -> [u8; 8] {
        let mut clear = [0; 8];
        clear[..4].copy_from_slice(&self.session.get().to_be_bytes());
        clear[4..].copy_from_slice(&self.to.get().to_be_bytes());
        clear
    }
}

//! Sealed frames of one session.

use core::num::NonZeroU32;

use laxity_model::channels::replay::Window;
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::noise::Keys;
use super::terms::Refused;
use crate::channels::frame::{Body, Cipher, HEADER, Header, NoRoom, TAG, begin};

/// Why a frame was not sealed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum SealError {
    /// It is too long, for what it is to be written to or for any frame.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// There is no session, or its time is over.
    #[error("there is no session with that host")]
    NoSession,
    /// Its keys have sealed as much as they may.
    #[error("the session's keys are used up")]
    UsedUp,
}

/// The way out of a session.
pub(super) struct Sealing {
    key: Key,
    theirs: NonZeroU32,
    counter: u64,
}

/// The way in.
pub(super) struct Opening {
    key: Key,
    window: Window,
}

/// A key, with how counters become nonces, which is as Noise has it for each cipher.
struct Key {
    key: LessSafeKey,
    cipher: Cipher,
}

impl Key {
    fn new(cipher: Cipher, bytes: &[u8; 32]) -> Self {
        let algorithm = match cipher {
            Cipher::AesGcm => &AES_256_GCM,
            Cipher::ChaChaPoly => &CHACHA20_POLY1305,
        };
        let key = UnboundKey::new(algorithm, bytes).expect("a key of 32 bytes");
        Self {
            key: LessSafeKey::new(key),
            cipher,
        }
    }

    fn nonce(&self, counter: u64) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[4..].copy_from_slice(&match self.cipher {
            Cipher::AesGcm => counter.to_be_bytes(),
            Cipher::ChaChaPoly => counter.to_le_bytes(),
        });
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Both ways of a session that the other side knows by this number.
pub(super) fn session(keys: &Keys, cipher: Cipher, theirs: NonZeroU32) -> (Sealing, Opening) {
    let sealing = Sealing {
        key: Key::new(cipher, &keys.sealing),
        theirs,
        counter: 0,
    };
    let opening = Opening {
        key: Key::new(cipher, &keys.opening),
        window: Window::default(),
    };
    (sealing, opening)
}

impl Sealing {
    /// How many were sealed.
    pub(super) const fn count(&self) -> u64 {
        self.counter
    }

    /// By which number the other side knows the session.
    pub(super) const fn theirs(&self) -> NonZeroU32 {
        self.theirs
    }

    /// Writes a sealed frame, unless so many were sealed, and says how long it is. Its counter is used up also where the frame is never sent.
    pub(super) fn seal(
        &mut self,
        body: &Body<'_>,
        out: &mut [u8],
        most: u64,
    ) -> Result<usize, SealError> {
        if self.counter >= most {
            return Err(SealError::UsedUp);
        }
        let header = Header {
            kind: body.kind(),
            session: Some(self.theirs),
            counter: self.counter,
        };
        let length = body.length();
        let rest = begin(header, length, out)?;
        body.write(&mut rest[..length]);
        let end = HEADER + length;
        let (clear, sealed) = out[..end].split_at_mut(header.kind.in_clear());
        let nonce = self.key.nonce(self.counter);
        let key = &self.key.key;
        let tag = key.seal_in_place_separate_tag(nonce, Aad::from(&*clear), sealed);
        self.counter += 1;
        // What a frame can hold is no more than a cipher takes.
        let tag = tag.map_err(|_| SealError::UsedUp)?;
        out[end..end + TAG].copy_from_slice(tag.as_ref());
        Ok(end + TAG)
    }
}

impl Opening {
    /// What is in a sealed frame with this header, which is opened where it lies. What is refused changes nothing but these bytes.
    pub(super) fn open<'a>(
        &mut self,
        header: Header,
        frame: &'a mut [u8],
    ) -> Result<Body<'a>, Refused> {
        if !self.window.is_new(header.counter) {
            return Err(Refused::Again);
        }
        let (clear, sealed) = frame.split_at_mut(header.kind.in_clear());
        let nonce = self.key.nonce(header.counter);
        let opened = self
            .key
            .key
            .open_in_place(nonce, Aad::from(&*clear), sealed);
        opened.map_err(|_| Refused::Forged)?;
        self.window.take(header.counter);
        let body = &frame[HEADER..frame.len() - TAG];
        Ok(Body::parse(header.kind, body)?)
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU16;

    use super::*;
    use crate::channels::frame::{Data, Frame, Left};
    use laxity_model::channels::signalling::Label;

    const PAGE: &str = include_str!("../../../../../docs/wire.md");

    fn golden(name: &str) -> Vec<u8> {
        let lines = PAGE
            .lines()
            .skip_while(|line| *line != format!("```golden {name}"));
        let block = lines.skip(1).take_while(|line| !line.starts_with("```"));
        let words = block.flat_map(|line| line.split('#').next().unwrap_or("").split_whitespace());
        let byte = |digits| u8::from_str_radix(digits, 16).expect("digits");
        words.map(byte).collect()
    }

    /// The page says how frames are sealed by one for each cipher, which are opened again.
    #[test]
    fn the_page_has_sealed_frames_as_they_are_sealed() {
        let key: [u8; 32] = core::array::from_fn(|place| place as u8);
        let session = NonZeroU32::new(257).expect("not 0");
        let data = Data {
            channel: Label {
                index: 1,
                generation: 2,
            },
            message: 3,
            part: 4,
            parts: NonZeroU16::new(5).expect("not 0"),
            earliness: 6,
            left: Left::UNKNOWN,
            best_effort: false,
            payload: b"laxity",
        };
        for (name, cipher) in [
            ("sealed-aes-gcm", Cipher::AesGcm),
            ("sealed-chacha20-poly1305", Cipher::ChaChaPoly),
        ] {
            let keys = Keys {
                sealing: key,
                opening: key,
            };
            let (mut sealing, mut opening) = super::session(&keys, cipher, session);
            sealing.counter = 5;
            let mut frame = [0; 100];
            let length = sealing.seal(&Body::Data(data), &mut frame, 6);
            let frame = &mut frame[..length.expect("there is room")];
            let digits: Vec<String> = frame.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(frame, golden(name), "{name}: {}", digits.join(" "));
            let header = Frame::of_datagram(frame).expect("a frame").header;
            assert_eq!(opening.open(header, frame), Ok(Body::Data(data)));
        }
    }
}

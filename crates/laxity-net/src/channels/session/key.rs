//! Static keys of hosts.

use core::fmt;
use core::str::FromStr;

use ring::{digest, hmac};
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver, RingResolver};

use crate::channels::frame::MAC;

/// Bytes of a key, public or secret.
const LENGTH: usize = 32;

/// Why something is no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    /// It is not so many digits.
    #[error("a key is 64 hexadecimal digits, and this is {0} characters")]
    Length(usize),
    /// Not all are digits.
    #[error("a key is 64 hexadecimal digits, and character {0} is none")]
    Digit(usize),
    /// The key of nobody.
    #[error("a key of zeros is nobody's")]
    Zero,
    /// The system has none.
    #[error("the system gives no random numbers")]
    Random,
}

/// By which everybody knows a host: 64 hexadecimal digits, as people write it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; LENGTH]);

impl PublicKey {
    /// Of these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; LENGTH]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        digits(text).map(Self)
    }
}

/// What a host tells nobody. It is not shown by `{:?}`.
#[derive(Clone)]
pub struct SecretKey {
    secret: [u8; LENGTH],
    public: PublicKey,
}

impl SecretKey {
    /// A new one, of the system's random numbers.
    ///
    /// # Errors
    ///
    /// The system has none.
    pub fn generate() -> Result<Self, KeyError> {
        let mut secret = [0; LENGTH];
        let random = RingResolver.resolve_rng();
        let filled = random.map(|mut random| random.try_fill_bytes(&mut secret));
        match filled {
            Some(Ok(())) => Self::new(secret),
            _ => Err(KeyError::Random),
        }
    }

    /// From what [`text`](Self::text) has written.
    ///
    /// # Errors
    ///
    /// It is no key.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        Self::new(digits(text)?)
    }

    /// As a file has it: 64 hexadecimal digits.
    #[must_use]
    pub fn text(&self) -> String {
        PublicKey(self.secret).to_string()
    }

    /// What others are told.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    pub(super) const fn bytes(&self) -> &[u8; LENGTH] {
        &self.secret
    }

    fn new(secret: [u8; LENGTH]) -> Result<Self, KeyError> {
        if secret == [0; LENGTH] {
            return Err(KeyError::Zero);
        }
        let curve = DefaultResolver.resolve_dh(&DHChoice::Curve25519);
        let mut curve = curve.expect("the curve is compiled in");
        curve.set(&secret);
        let mut public = [0; LENGTH];
        public.copy_from_slice(curve.pubkey());
        Ok(Self {
            secret,
            public: PublicKey(public),
        })
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the secret key of {}", self.public)
    }
}

fn digits(text: &str) -> Result<[u8; LENGTH], KeyError> {
    let text = text.trim();
    let count = text.chars().count();
    if count != 2 * LENGTH {
        return Err(KeyError::Length(count));
    }
    let mut key = [0; LENGTH];
    for (place, digit) in text.chars().enumerate() {
        let digit = digit.to_digit(16).ok_or(KeyError::Digit(place + 1))?;
        // Less than 16.
        key[place / 2] = key[place / 2] << 4 | digit as u8;
    }
    if key == [0; LENGTH] {
        return Err(KeyError::Zero);
    }
    Ok(key)
}

/// Codes by which who knows a host's public key shows that he does. They keep nothing secret, so they are compared like any bytes.
#[derive(Clone, Debug)]
pub(super) struct Code(hmac::Key);

impl Code {
    /// For whoever has this key.
    pub(super) fn new(of: &PublicKey) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(b"laxity channels 1, code");
        context.update(of.bytes());
        Self(hmac::Key::new(hmac::HMAC_SHA256, context.finish().as_ref()))
    }

    /// Over these parts, one behind the other.
    pub(super) fn over(&self, parts: [&[u8]; 2]) -> [u8; MAC] {
        let mut context = hmac::Context::with_key(&self.0);
        parts.iter().for_each(|part| context.update(part));
        let mut code = [0; MAC];
        code.copy_from_slice(&context.sign().as_ref()[..MAC]);
        code
    }
}

/// A host as itself: its key, and what it checks the code of every first message with.
#[derive(Clone, Debug)]
pub struct Identity {
    pub(super) key: SecretKey,
    pub(super) code: Code,
}

impl Identity {
    /// Of this key.
    #[must_use]
    pub fn new(key: SecretKey) -> Self {
        let code = Code::new(&key.public());
        Self { key, code }
    }

    /// By which others know it.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.key.public()
    }
}

//! What is asked for a channel, and what a host lacks for it: in the words in which hosts say it to each other.

use alloc::sync::Arc;
use core::fmt;
use core::num::NonZeroU32;

use derive_more::Display;

use super::admission::Traffic;
use crate::Span;

/// The longest name of a channel, in bytes.
pub const MOST_NAME: usize = 64;

/// A channel's name, as whoever listens to it knows it: 1 to [`MOST_NAME`] bytes of ASCII letters, digits, `-`, `_`, `.` and `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
pub struct Name(Arc<str>);

/// A text is no name of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a channel's name has 1 to {MOST_NAME} letters, digits, `-`, `_`, `.` or `/`")]
pub struct NameError;

impl Name {
    /// A name.
    ///
    /// # Errors
    ///
    /// [`NameError`].
    pub fn new(name: &str) -> Result<Self, NameError> {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
        let fits = (1..=MOST_NAME).contains(&name.len());
        let good = fits && name.bytes().all(is_good);
        good.then(|| Self(name.into())).ok_or(NameError)
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a channel is to carry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Who listens to this name gets it.
    pub name: Name,
    /// What it may send.
    pub traffic: Traffic,
    /// Whether a message that is late is discarded by the first hop that knows, and not delivered.
    pub discard: bool,
}

/// What a host may have too little of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Display)]
pub enum Scarce {
    /// Time of its processor, in nanoseconds: of a delay, of each interval, or without an interruption.
    #[display("processor")]
    Processor,
    /// Time of a link, in nanoseconds: of a delay, of each interval, or without an interruption.
    #[display("link")]
    Link,
    /// Buffers of a packet each.
    #[display("buffers")]
    Buffers,
    /// Steps of its own search, of which it takes no more: whether it has enough is not known. None is said to be missing.
    #[display("search")]
    Search,
    /// What the user may have: channels, or bits a second.
    #[display("quota")]
    Quota,
}

/// What one host lacks for a channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shortage {
    /// Of what.
    pub of: Scarce,
    /// So much is missing, in its unit; 0 where no amount would do.
    pub lacks: u64,
    /// What it would grant.
    pub fits: Fits,
}

/// What a host would grant instead, each with everything else as it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Fits {
    /// This delay at this host, which is not zero: were other versions of the channel that are there content with it.
    pub within: Option<Span>,
    /// A message in so long, which is not zero.
    pub interval: Option<Span>,
    /// Messages of so many bytes.
    pub size: Option<NonZeroU32>,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, lacks, fits } = self;
        match of {
            Scarce::Processor | Scarce::Link => {
                write!(f, "{of}: {} missing", Span::from_nanos(*lacks))?;
            }
            Scarce::Search => {
                f.write_str("whether it fits is not known within a bounded search")?;
            }
            Scarce::Buffers | Scarce::Quota => write!(f, "{of}: {lacks} missing")?,
        }
        if let Some(within) = fits.within {
            write!(f, "; a delay of {within} would fit")?;
        }
        if let Some(interval) = fits.interval {
            write!(f, "; a message in {interval} would fit")?;
        }
        if let Some(size) = fits.size {
            write!(f, "; messages of {size} B would fit")?;
        }
        Ok(())
    }
}

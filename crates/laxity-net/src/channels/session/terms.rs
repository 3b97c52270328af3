//! What is agreed with a neighbour, and what comes of what it sends.

use laxity_model::Span;

use super::key::PublicKey;
use super::noise::Failed;
use crate::channels::frame::{Cipher, Data, Malformed, Signal};

/// How long keys are used, and how often a handshake is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Fresh keys are agreed on when a session is so old; by whoever answered the last time a little later, so that not both begin.
    pub fresh_after: Span,
    /// And a session that is so old is over.
    pub over_after: Span,
    /// Fresh keys are agreed on when so many frames were sealed on one side.
    pub fresh_frames: u64,
    /// And no more than so many are.
    pub most_frames: u64,
    /// A first message that is not answered is followed by another one after so long, the next one after twice that, and so on up to 16 times.
    pub retry: Span,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            fresh_after: Span::from_secs(120),
            over_after: Span::from_secs(180),
            // 2²⁵ of the longest frames are 2^34.2 blocks: fewer than what TLS 1.3 allows for a key of AES-GCM (RFC 8446, 5.5).
            fresh_frames: 1 << 24,
            most_frames: 1 << 25,
            retry: Span::from_millis(250),
        }
    }
}

/// The other host of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Its key.
    pub key: PublicKey,
    /// By which number this host knows it, another one for each neighbour: less than 2²⁴ − 1.
    pub number: u32,
    /// How frames are sealed between the two; both have to say the same.
    pub cipher: Cipher,
}

/// Why a frame is refused. Nothing has changed but its bytes, which may be gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Refused {
    /// It is no frame, or is damaged.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It is for no session that is here.
    #[error("for no session that is here")]
    NoSession,
    /// It was seen before, or is too old to tell.
    #[error("seen before")]
    Again,
    /// It is not of whom it claims to be.
    #[error("forged")]
    Forged,
    /// It is not sealed.
    #[error("not sealed, on a link where all is")]
    Open,
    /// It is to be sealed in another way than was agreed.
    #[error("for another cipher")]
    Cipher,
    /// There were too many handshakes.
    #[error("more handshakes than are looked into")]
    Budget,
    /// It answers nothing that was asked, or a question that is the other side's to give up.
    #[error("an answer to nothing, or a question crossing ours")]
    Unasked,
    /// A first message that is no news. Its sender is told so.
    #[error("a first message that is older than another one")]
    Stale,
}

impl From<Failed> for Refused {
    fn from(_: Failed) -> Self {
        Self::Forged
    }
}

/// What has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Came<'a> {
    /// A part of a channel's message.
    Data(Data<'a>),
    /// Something of the other node.
    Signal(Signal),
    /// A part of a handshake, which was answered.
    Answered,
    /// There is a new session. The other side uses it as soon as it hears in it: something should be said at once.
    Agreed,
    /// The other side had heard of a later handshake than this host remembers. It is tried again at once.
    Again,
}

/// It was to be a neighbour of itself, or of more than there can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a host is no neighbour of itself, and has at most 2^24 of them")]
pub struct Same;

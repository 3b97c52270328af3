//! One handshake: Noise's IK, and what is told in it.

use core::num::NonZeroU32;

use snow::params::NoiseParams;
use snow::resolvers::{DefaultResolver, FallbackResolver, RingResolver};
use snow::{Builder, HandshakeState};

use super::key::{Code, Identity, PublicKey};
use crate::channels::frame::{Answer, Cipher, First};

/// What both sides mix in first, and after it what of the first message is in clear.
const PROLOGUE: &[u8; 17] = b"laxity channels 1";

/// The handshake has failed: it was not meant for us, is not of whom we think, or there are no random numbers. Nothing has come of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Failed;

impl From<snow::Error> for Failed {
    fn from(_: snow::Error) -> Self {
        Self
    }
}

/// The keys of a session.
pub(super) struct Keys {
    pub(super) sealing: [u8; 32],
    pub(super) opening: [u8; 32],
}

/// What became of a first message, as its answer tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// There is a session.
    Agreed,
    /// A message with this stamp was heard before: only one with a greater one is news.
    Stale(u64),
}

/// A first message was sent.
pub(super) struct Began {
    pub(super) own: NonZeroU32,
    state: HandshakeState,
}

/// A first message has come, and is genuine.
pub(super) struct Heard {
    pub(super) stamp: u64,
    session: NonZeroU32,
    state: HandshakeState,
}

fn builder(cipher: Cipher) -> Builder<'static> {
    let name = match cipher {
        Cipher::AesGcm => "Noise_IK_25519_AESGCM_SHA256",
        Cipher::ChaChaPoly => "Noise_IK_25519_ChaChaPoly_SHA256",
    };
    let parameters: NoiseParams = name.parse().expect("a name of Noise's");
    let resolver = FallbackResolver::new(Box::new(RingResolver), Box::new(DefaultResolver));
    Builder::with_resolver(parameters, Box::new(resolver))
}

fn prologue(first: &First) -> [u8; 25] {
    let mut prologue = [0; 25];
    let (label, clear) = prologue.split_at_mut(PROLOGUE.len());
    label.copy_from_slice(PROLOGUE);
    clear.copy_from_slice(&first.clear());
    prologue
}

/// The first message to a host, of a session that is to have this number here.
pub(super) fn begin(
    identity: &Identity,
    remote: &PublicKey,
    code: &Code,
    own: NonZeroU32,
    cipher: Cipher,
    stamp: u64,
) -> Result<(First, Began), Failed> {
    let mut first = First {
        session: own,
        cipher,
        noise: [0; _],
        mac: [0; _],
    };
    let prologue = prologue(&first);
    let mut state = builder(cipher)
        .prologue(&prologue)?
        .local_private_key(identity.key.bytes())?
        .remote_public_key(remote.bytes())?
        .build_initiator()?;
    state.write_message(&stamp.to_be_bytes(), &mut first.noise)?;
    first.mac = code.over([&first.clear(), &first.noise]);
    Ok((first, Began { own, state }))
}

/// Looks into a first message. It costs two products of Diffie and Hellman, of what is forged one.
pub(super) fn hear(
    identity: &Identity,
    remote: &PublicKey,
    first: &First,
) -> Result<Heard, Failed> {
    let mut state = builder(first.cipher)
        .prologue(&prologue(first))?
        .local_private_key(identity.key.bytes())?
        .build_responder()?;
    let mut stamp = [0; 8];
    if state.read_message(&first.noise, &mut stamp)? != stamp.len() {
        return Err(Failed);
    }
    if state.get_remote_static() != Some(remote.bytes()) {
        return Err(Failed);
    }
    Ok(Heard {
        stamp: u64::from_be_bytes(stamp),
        session: first.session,
        state,
    })
}

/// What is sealed in an answer: the number of the session, so that it cannot be changed in clear, and what became of it.
fn told(own: NonZeroU32, outcome: Outcome) -> [u8; 16] {
    let (kind, stamp) = match outcome {
        Outcome::Agreed => (1_u32, 0),
        Outcome::Stale(stamp) => (2, stamp),
    };
    let mut told = [0; 16];
    told[..4].copy_from_slice(&own.get().to_be_bytes());
    told[4..8].copy_from_slice(&kind.to_be_bytes());
    told[8..].copy_from_slice(&stamp.to_be_bytes());
    told
}

impl Heard {
    /// Answers, and has the keys of a session that is to have this number here.
    pub(super) fn answer(
        mut self,
        code: &Code,
        own: NonZeroU32,
        outcome: Outcome,
    ) -> Result<(Answer, Keys), Failed> {
        let mut answer = Answer {
            session: own,
            to: self.session,
            noise: [0; _],
            mac: [0; _],
        };
        let told = told(own, outcome);
        self.state.write_message(&told, &mut answer.noise)?;
        answer.mac = code.over([&answer.clear(), &answer.noise]);
        let (begun, answered) = self.state.dangerously_get_raw_split();
        let keys = Keys {
            sealing: answered,
            opening: begun,
        };
        Ok((answer, keys))
    }
}

impl Began {
    /// Looks into an answer. One that is not of whom was asked changes nothing: the next one may be.
    pub(super) fn finish(&mut self, answer: &Answer) -> Result<(Outcome, Keys), Failed> {
        let mut told = [0; 16];
        if self.state.read_message(&answer.noise, &mut told)? != told.len() {
            return Err(Failed);
        }
        let stamp = u64::from_be_bytes(*told.last_chunk().ok_or(Failed)?);
        let said = [Outcome::Agreed, Outcome::Stale(stamp)];
        let is_meant = |outcome: &Outcome| self::told(answer.session, *outcome) == told;
        let outcome = said.into_iter().find(is_meant).ok_or(Failed)?;
        let (begun, answered) = self.state.dangerously_get_raw_split();
        let keys = Keys {
            sealing: begun,
            opening: answered,
        };
        Ok((outcome, keys))
    }
}

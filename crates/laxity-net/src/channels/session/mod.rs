//! Whom a host believes: keys, sealed frames, and how two hosts agree on them.
//!
//! Hosts know each other by static public keys, and agree on keys by Noise's pattern IK (`snow`), of which one message each way is enough; with these, frames are sealed by `ring`. Nothing here is cryptography of ours, but the order in which it is used:
//!
//! * A first message carries a [code](Identity) keyed by the receiver's public key, which costs a hash to check and comes before any Diffie–Hellman; what passes it has a [`Budget`].
//! * A first message that is heard again is no news: each has a stamp, which only grows. Whoever has forgotten his own (a host that has begun anew, a clock that was set back) is told the greatest one heard, sealed for him.
//! * Whoever answers uses the new keys as soon as he has heard with them, so an answer may be lost. Of two who begin at once the one with the greater key goes on.
//! * Fresh keys come before the old ones have sealed too much, or for too long, and their first message travels in the old session: so no flood of others keeps two hosts that have one from the next.
//!
//! [`Peer`] is one end of that. It reads no clock and sends nothing by itself.

mod budget;
mod key;
mod noise;
mod peer;
mod seal;
mod terms;

pub use budget::Budget;
pub use key::{Identity, KeyError, PublicKey, SecretKey};
pub use peer::Peer;
pub use seal::SealError;
pub use terms::{Came, Neighbour, Refused, Same, Terms};

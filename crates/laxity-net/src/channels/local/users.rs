//! What the users of a host may do.

use std::collections::{BTreeMap, BTreeSet};

use laxity_model::channels::admission::Traffic;
use laxity_model::channels::asked::{Fits, Name, Scarce, Shortage};

/// What a user may do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct User {
    /// So many channels that he has opened at once.
    pub channels: u32,
    /// So many bits a second of messages of all of them together, without headers.
    pub bits: u64,
    /// Channels that he may open.
    pub open: BTreeSet<Name>,
    /// Channels that he may listen to.
    pub listen: BTreeSet<Name>,
}

/// What a user has opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Held {
    /// So many channels.
    pub channels: u32,
    /// Of so many bits a second together.
    pub bits: u64,
}

/// Why a user may not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Forbidden {
    /// He may not open, or not listen to, this name at all.
    Name,
    /// He has too much already.
    Quota(Shortage),
}

/// What the users of a host may do, by the system's numbers of them. Root and who runs the node may do all; who is not named may do nothing.
#[derive(Clone, Debug)]
pub struct Users {
    owner: u32,
    users: BTreeMap<u32, User>,
    held: BTreeMap<u32, Held>,
}

impl Users {
    /// Who runs the node, and what others may do.
    #[must_use]
    pub const fn new(owner: u32, users: BTreeMap<u32, User>) -> Self {
        Self {
            owner,
            users,
            held: BTreeMap::new(),
        }
    }

    const fn may_all(&self, uid: u32) -> bool {
        uid == 0 || uid == self.owner
    }

    /// Whether a user may listen to a name. O(log n).
    ///
    /// # Errors
    ///
    /// [`Forbidden::Name`].
    pub fn may_listen(&self, uid: u32, name: &Name) -> Result<(), Forbidden> {
        let user = self.users.get(&uid);
        let may = self.may_all(uid) || user.is_some_and(|user| user.listen.contains(name));
        may.then_some(()).ok_or(Forbidden::Name)
    }

    /// A user opens a channel, or changes one of `before`, which counts from now on until it is [closed](Self::closes). O(log n).
    ///
    /// # Errors
    ///
    /// [`Forbidden`]: nothing has changed.
    pub fn opens(
        &mut self,
        uid: u32,
        name: &Name,
        traffic: &Traffic,
        before: Option<&Traffic>,
    ) -> Result<(), Forbidden> {
        let held = self.held(uid);
        let now = Held {
            channels: held.channels.saturating_add(u32::from(before.is_none())),
            bits: held
                .bits
                .saturating_sub(before.map_or(0, Traffic::bits))
                .saturating_add(traffic.bits()),
        };
        if !self.may_all(uid) {
            let user = self.users.get(&uid).filter(|user| user.open.contains(name));
            user.ok_or(Forbidden::Name)?.has_room(now)?;
        }
        self.held.insert(uid, now);
        Ok(())
    }

    /// One that he opened counts as this from now on, and as that no more. That may be more than he may have.
    pub fn recounts(&mut self, uid: u32, now: &Traffic, before: &Traffic) {
        if let Some(held) = self.held.get_mut(&uid) {
            let rest = held.bits.saturating_sub(before.bits());
            held.bits = rest.saturating_add(now.bits());
        }
    }

    /// One that he opened counts no more.
    pub fn closes(&mut self, uid: u32, traffic: &Traffic) {
        let held = self.held(uid);
        let now = Held {
            channels: held.channels.saturating_sub(1),
            bits: held.bits.saturating_sub(traffic.bits()),
        };
        match now {
            Held { channels: 0, .. } => self.held.remove(&uid),
            now => self.held.insert(uid, now),
        };
    }

    /// What a user has opened.
    #[must_use]
    pub fn held(&self, uid: u32) -> Held {
        self.held.get(&uid).copied().unwrap_or_default()
    }
}

impl User {
    fn has_room(&self, now: Held) -> Result<(), Forbidden> {
        let channels = now.channels.saturating_sub(self.channels);
        let lacks = match channels {
            0 => now.bits.saturating_sub(self.bits),
            channels => channels.into(),
        };
        let short = Shortage {
            of: Scarce::Quota,
            lacks,
            fits: Fits::default(),
        };
        match lacks {
            0 => Ok(()),
            _ => Err(Forbidden::Quota(short)),
        }
    }
}

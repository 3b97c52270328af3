//! Executors of several processes that take turns on one processor: the memory that they share, and who sees to it that the baton goes on.
//!
//! What is decided there is decided in [`laxity_model::program::together`].

mod feeder;
mod guard;
mod sitting;

use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use laxity_model::program::together::{self, Terms};

pub use self::feeder::FeedError;
pub(crate) use self::feeder::{Feeder, Finishes};
pub use self::guard::{Guard, Watch, guard};
pub(crate) use self::sitting::{Place, Sitting};
use crate::os::clock;
use crate::os::sealed::{Sealed, Unsealed};

/// What is in the shared memory.
type Shared = together::Region;

/// Why there is no region, or no seat.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The kernel said no.
    #[error("the memory that processes share: {0}")]
    Os(#[from] io::Error),
    /// What the descriptor names is no region that this version knows.
    #[error("the descriptor names no region: {0}")]
    Unknown(&'static str),
    /// Instants that are written there are other moments to this process.
    #[error(
        "the region is of another time namespace, by whose clock the same moment is another instant (`lsns -t time` shows them)"
    )]
    AnotherClock,
}

impl From<rustix::io::Errno> for RegionError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Os(errno.into())
    }
}

impl From<Unsealed> for RegionError {
    fn from(unsealed: Unsealed) -> Self {
        match unsealed {
            Unsealed::Os(error) => Self::Os(error),
            Unsealed::Other(why) => Self::Unknown(why),
        }
    }
}

/// Memory that the processes of one processor share, and the descriptor by which others get it. It tells who has a seat, and whose turn it is.
#[derive(Clone, Debug)]
pub struct Region(Arc<Mapped>);

#[derive(Debug)]
struct Mapped {
    sealed: Sealed,
    /// What whoever guards it has said, as this process has read it first.
    terms: OnceLock<Terms>,
}

impl Deref for Region {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        // SAFETY: mapped, of this size and aligned to a page, until the last of these is dropped. The seal keeps the file as long. All that is there is atomic, and every bit pattern is a valid one.
        unsafe { self.0.sealed.memory().cast().as_ref() }
    }
}

impl Region {
    /// A new one, which nobody has a seat in.
    ///
    /// # Errors
    ///
    /// What the kernel says: no memory, or no descriptor, or not by which clock this process tells instants (`/proc` does).
    pub fn create() -> Result<Self, RegionError> {
        let sealed = Sealed::create("laxity-upcalls", size_of::<Shared>())?;
        let region = Self::of(sealed);
        region.tells_by(clock::namespace()?);
        region.format();
        Ok(region)
    }

    /// The one that another process has made.
    ///
    /// # Errors
    ///
    /// What the kernel says; or it is none that this version knows, or one that might become shorter while it is in use, or of another time namespace.
    pub fn attach(descriptor: OwnedFd) -> Result<Self, RegionError> {
        let region = Self::of(Sealed::attach(descriptor, size_of::<Shared>())?);
        if !region.is_known() {
            return Err(RegionError::Unknown("it is of another layout"));
        }
        match region.clock() == clock::namespace()? {
            true => Ok(region),
            false => Err(RegionError::AnotherClock),
        }
    }

    /// Whether both are the same memory, however often this process has it.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.sealed.is_same(&other.0.sealed)
    }

    fn of(sealed: Sealed) -> Self {
        let terms = OnceLock::new();
        Self(Arc::new(Mapped { sealed, terms }))
    }

    /// What whoever guards it has said, as this process has read it first: whatever is written there afterwards, by that its upcalls are held to what they were admitted with. `None` if nobody has.
    pub fn terms(&self) -> Option<Terms> {
        let said = || self.deref().terms();
        let known = self.0.terms.get().copied();
        known.or_else(|| said().map(|terms| *self.0.terms.get_or_init(|| terms)))
    }

    /// Whether it says something else now.
    fn says_otherwise(&self) -> bool {
        self.deref().terms() != self.terms()
    }
}

impl AsFd for Region {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.sealed.as_fd()
    }
}

/// A seat that was given to this process.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Where.
    pub region: Region,
    /// Which.
    pub number: u16,
}

#[cfg(test)]
mod tests {
    use laxity_model::executor::Claim;
    use laxity_model::program::together::{
        Act, Member, Occupant, Others as _, SEATS, Sentinel, Standing, Watchdog,
    };
    use laxity_model::{Instant, Service, Span};
    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, SealFlags};

    use super::*;

    #[test]
    fn what_is_no_region_is_refused() {
        let plain = rustix::fs::memfd_create("other", MemfdFlags::CLOEXEC).unwrap();
        assert!(matches!(
            Region::attach(plain),
            Err(RegionError::Unknown(_))
        ));
        let file = tempfile::tempfile().unwrap();
        assert!(matches!(
            Region::attach(file.into()),
            Err(RegionError::Unknown(_))
        ));
        let region = Region::create().unwrap();
        let mut layout = [0; 8];
        rustix::io::pread(&region, &mut layout, 0).unwrap();
        rustix::io::pwrite(&region, &[0; 8], 0).unwrap();
        let again = || Region::attach(region.as_fd().try_clone_to_owned().unwrap());
        assert!(matches!(again(), Err(RegionError::Unknown(_))));
        rustix::io::pwrite(&region, &layout, 0).unwrap();
        assert!(again().is_ok());
        assert!(rustix::fs::ftruncate(&region, 0).is_err());
    }

    /// Whoever reads past the end of what somebody has made shorter is ended (SIGBUS).
    #[test]
    fn memory_that_may_become_shorter_is_refused_whatever_is_in_it() {
        let region = Region::create().unwrap();
        let mut all = vec![0; size_of::<Shared>()];
        assert_eq!(rustix::io::pread(&region, &mut all, 0).unwrap(), all.len());
        let again = |seals| {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let copy = rustix::fs::memfd_create("copy", flags).unwrap();
            assert_eq!(rustix::io::pwrite(&copy, &all, 0).unwrap(), all.len());
            rustix::fs::fcntl_add_seals(&copy, seals).unwrap();
            Region::attach(copy)
        };
        assert!(again(SealFlags::SHRINK).is_ok());
        let refused = again(SealFlags::GROW | SealFlags::SEAL);
        assert!(matches!(refused, Err(RegionError::Unknown(_))));
    }

    proptest! {
        /// Whatever a stranger writes: every function returns, and none reads elsewhere.
        #[test]
        fn forged_memory_is_survived(
            forged in proptest::collection::vec((0..size_of::<Shared>() as u64, any::<[u8; 8]>()), 1..60),
            zeroes in any::<bool>(),
        ) {
            let region = Region::create().unwrap();
            let sit = |seat: u16| {
                region.gives(seat);
                Member::sit(region.clone(), seat, 1).unwrap()
            };
            let mut members: Vec<_> = (0..3).map(sit).collect();
            let mut sentinel = Sentinel::new(region.clone(), Span::from_micros(1));
            let mut watchdog: Watchdog<_, SEATS> = Watchdog::new(region.clone(), Service::from_micros(1));
            let claim = Claim { rank_ns: 7, release: Instant::ZERO };
            for (step, (at, mut bytes)) in (0_u64..).zip(forged) {
                if zeroes {
                    bytes[4..].fill(0);
                }
                rustix::io::pwrite(&region, &bytes, at & !7).unwrap();
                let now = Instant::from_micros(step);
                for member in &mut members {
                    member.hear();
                    member.publish(now, &mut [claim].into_iter());
                    let _ = member.wait(now);
                    let _ = (member.look(now, claim), member.is_turn(now, &mut [claim].into_iter()));
                }
                let _ = (sentinel.look(now), watchdog.look(now, |_, _| Occupant::Present(Some(Service::ZERO))));
                let _ = (region.call(1, now), region.members(), region.remove(2, now));
            }
            // Who makes the seats anew has them all again.
            for seat in 0..SEATS as u16 {
                region.vacate(seat, Instant::ZERO);
                prop_assert_eq!(region.standing(seat), Some(Standing::Free));
            }
        }
    }

    #[test]
    fn a_forged_turn_is_taken_back() {
        let region = Region::create().unwrap();
        region.gives(0);
        let mut member = Member::sit(region.clone(), 0, 1).unwrap();
        member.publish(Instant::ZERO, &mut std::iter::empty());
        assert_eq!(member.wait(Instant::ZERO), Act::Took);
        // A seat past the last is at work, as is said in the second line of the memory.
        rustix::io::pwrite(&region, &40_000_u64.to_ne_bytes(), 64).unwrap();
        assert_eq!(region.turn().seat(), Some(39_999));
        assert!(matches!(member.wait(Instant::ZERO), Act::Sleep { .. }));
        let mut sentinel = Sentinel::new(region.clone(), Span::ZERO);
        sentinel.look(Instant::from_micros(1));
        assert!(region.turn().is_at_rest());
        assert_eq!(member.wait(Instant::from_micros(1)), Act::Took);
    }
}

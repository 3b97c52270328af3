//! Why a link cannot be owned, or not be put back, told apart by what mends it.

use std::{fmt, io};

use rustix::io::Errno;

use super::htb::{KIND, MAJOR};

/// What is at the root of an interface's queues.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RootQueue {
    /// As `tc` calls it: `fq_codel`.
    pub kind: String,
    /// Its handle, of which the upper half is the number in front of the colon. The kernel's own choice has 0; what somebody configured never has.
    pub handle: u32,
}

impl RootQueue {
    /// Whether the kernel put it there by itself, so that it does so again when whatever came in its place is gone.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.handle == 0
    }

    /// Whether it is of the kind and number of ours.
    #[must_use]
    pub(super) fn is_ours(&self) -> bool {
        self.kind == KIND && self.handle == u32::from(MAJOR) << 16
    }
}

impl fmt::Display for RootQueue {
    /// As `tc qdisc show` does: `htb 1:`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:x}:", self.kind, self.handle >> 16)
    }
}

/// A link cannot be owned as it was asked for; nothing of it was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{interface} cannot be owned: {cause}; remedy: {}", cause.remedy())]
pub struct OwnError {
    /// As it was named.
    pub interface: String,
    /// The one cause.
    pub cause: OwnCause,
}

/// What stands against owning a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OwnCause {
    /// There is none of this name in this network namespace.
    Missing,
    /// `CAP_NET_ADMIN` of the network namespace's owner is missing.
    NoRight,
    /// The kernel has no HTB, and no module of it.
    NoHtb,
    /// Somebody configured its queues.
    Taken(RootQueue),
    /// Another of ours owns it, or did and was not followed by its guardian.
    Owned,
    /// No class can have so many bits a second.
    Rate(u64),
    /// There is nobody to put it back if this process dies: why.
    NoGuardian(String),
    /// What no cause that can be told explains: what was asked for, and what the kernel said.
    System(&'static str, Errno),
}

impl OwnCause {
    /// A command or a setting that mends it.
    #[must_use]
    pub fn remedy(&self) -> String {
        let text = match self {
            Self::Missing => {
                "`ip link` lists the interfaces of this namespace; `ip netns exec NAMESPACE` runs a command in another"
            }
            Self::NoRight => {
                "run as root, or `sudo setcap cap_net_admin+ep PROGRAM`, or in a user namespace with a network namespace of its own (`unshare -rn`); with `own = \"none\"` no right is needed, and nothing is bounded"
            }
            Self::NoHtb => {
                "as root `modprobe sch_htb`, or a kernel built with CONFIG_NET_SCH_HTB; with `own = \"none\"` nothing is bounded"
            }
            Self::Taken(_) => {
                "`tc -d qdisc show dev NAME` tells what it is; whoever put it there takes it away, or `tc qdisc del dev NAME root` as root; with `own = \"none\"` it stays, and nothing is bounded"
            }
            Self::Owned => {
                "end the other laxity; where none runs (`pgrep laxity`), as root `tc qdisc del dev NAME root`"
            }
            Self::Rate(_) => "declare the link's rate, of which 97 % are 1 kbit/s to 34 Tbit/s",
            Self::NoGuardian(_) => {
                "leave the process room for one more process and some descriptors (`ulimit -u`, `ulimit -n`)"
            }
            Self::System(..) => {
                "look at the kernel's log (`dmesg`), and at a filter of system calls in a container"
            }
        };
        text.to_owned()
    }

    /// Of what was refused at this step.
    pub(super) fn of(step: &'static str, errno: Errno) -> Self {
        match (step, errno) {
            (_, Errno::NODEV) => Self::Missing,
            (_, Errno::PERM | Errno::ACCESS) => Self::NoRight,
            (super::htb::ROOT, Errno::NOENT | Errno::OPNOTSUPP) => Self::NoHtb,
            (_, errno) => Self::System(step, errno),
        }
    }
}

impl fmt::Display for OwnCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such interface in this network namespace"),
            Self::NoRight => f.write_str("its queues may not be changed without CAP_NET_ADMIN"),
            Self::NoHtb => f.write_str("this kernel has no HTB"),
            Self::Taken(root) => write!(f, "somebody configured its queues: {root}"),
            Self::Owned => f.write_str("another laxity owns it"),
            Self::Rate(rate) => write!(f, "no class has {rate} bit/s"),
            Self::NoGuardian(why) => write!(f, "there is no guardian to put it back: {why}"),
            Self::System(step, errno) => write!(f, "{step}: {}", io::Error::from(*errno)),
        }
    }
}

/// A link is not as it was before it was owned; what is ours of it is gone, unless the system failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{interface} is not as it was: {}", in_words(causes))]
pub struct PutBackError {
    /// As it was named.
    pub interface: String,
    /// All of them; at least one.
    pub causes: Vec<PutBackCause>,
}

fn in_words(causes: &[PutBackCause]) -> String {
    let words: Vec<String> = causes.iter().map(ToString::to_string).collect();
    words.join("; ")
}

/// What is not as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PutBackCause {
    /// Somebody else put this at the root of its queues meanwhile, or the kernel's own choice if `None`: it is left.
    #[error("somebody changed its queues meanwhile, to {}, which is left", root_in_words(.0.as_ref()))]
    RootChanged(Option<RootQueue>),
    /// The kernel's own choice is no longer the one that it was.
    #[error("the kernel chose {} for its queues, and before it chose {}", root_in_words(.now.as_ref()), root_in_words(.before.as_ref()))]
    OtherDefault {
        /// What it was.
        before: Option<RootQueue>,
        /// What it is.
        now: Option<RootQueue>,
    },
    /// Somebody else gave it so many segments meanwhile: they are left.
    #[error("somebody changed its gso_max_segs meanwhile, to {0}, which is left")]
    SegmentsChanged(u32),
    /// The interface is gone.
    #[error("it is gone")]
    Gone,
    /// What the kernel says of what it was asked for; the guardian tries again when this process ends.
    #[error("{0}: {1}")]
    System(&'static str, Errno),
}

fn root_in_words(root: Option<&RootQueue>) -> String {
    root.map_or_else(|| "none".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_htb_is_told_from_what_is_not_allowed() {
        let root = super::super::htb::ROOT;
        assert_eq!(OwnCause::of(root, Errno::NOENT), OwnCause::NoHtb);
        assert_eq!(OwnCause::of(root, Errno::PERM), OwnCause::NoRight);
        assert_eq!(OwnCause::of(root, Errno::NODEV), OwnCause::Missing);
        let other = OwnCause::of("a class", Errno::NOENT);
        assert_eq!(other, OwnCause::System("a class", Errno::NOENT));
        assert!(OwnCause::NoHtb.remedy().contains("modprobe sch_htb"));
    }
}

//! Why no bound can be had on a link: what is known of it without sending anything.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use crate::net::interface;

/// Whether a link is owned, as a network's description says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Own {
    /// `class`: by a class ahead of the kernel's other traffic.
    Class,
    /// `none`: not at all.
    #[default]
    None,
}

impl FromStr for Own {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "class" => Ok(Self::Class),
            "none" => Ok(Self::None),
            _ => Err(format!("`{text}` is neither `class` nor `none`")),
        }
    }
}

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Class => "class",
            Self::None => "none",
        })
    }
}

/// Why nothing that is granted over a link is enforced there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unenforced {
    /// Nobody owns it.
    NotOwned,
    /// It is a radio's: what that carries changes with the weather, and it queues, repeats and reorders below all classes.
    Wireless,
    /// Its card says that it carries less than was declared.
    Slower {
        /// What was declared, in bits a second.
        declared: u64,
        /// What it carries, in bits a second.
        carries: u64,
    },
}

impl Unenforced {
    /// What mends it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::NotOwned => "`own = \"class\"`, with CAP_NET_ADMIN",
            Self::Wireless => "a wire",
            Self::Slower { .. } => {
                "declare what it carries; `ethtool NAME` tells, and why it carries no more"
            }
        }
    }
}

impl fmt::Display for Unenforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOwned => {
                f.write_str("nobody owns the link: whatever else the kernel sends goes before")
            }
            Self::Wireless => f.write_str("the link is a radio's, which has no rate of its own"),
            Self::Slower { declared, carries } => write!(
                f,
                "the link carries {carries} bit/s, and {declared} were declared"
            ),
        }
    }
}

/// All that is known to stand against a bound on this interface of this thread's network namespace, at a declared rate in bits a second. That nothing is found is no proof: a card may not say
/// what it carries, and nobody says what is behind it.
#[must_use]
pub fn unenforced(interface: &str, own: Own, rate: u64) -> Vec<Unenforced> {
    let not_owned = (own == Own::None).then_some(Unenforced::NotOwned);
    let is_wireless = is_wireless(interface, Path::new("/sys"), Path::new("/proc/thread-self"));
    let carries = interface::carries(interface).filter(|carries| *carries < rate);
    let slower = carries.map(|carries| Unenforced::Slower {
        declared: rate,
        carries,
    });
    let wireless = is_wireless.then_some(Unenforced::Wireless);
    [not_owned, wireless, slower]
        .into_iter()
        .flatten()
        .collect()
}

/// Whether an interface is a radio's, as the kernel says in one of two places. The first may be another namespace's.
fn is_wireless(name: &str, sys: &Path, own: &Path) -> bool {
    let table = fs::read_to_string(own.join("net/wireless")).unwrap_or_default();
    let names = table.lines().filter_map(|line| line.split_once(':'));
    let mut names = names.map(|(name, _)| name.trim());
    names.any(|listed| listed == name) || sys.join("class/net").join(name).join("phy80211").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_radio_is_told_by_its_device_and_by_the_table() {
        let [sys, own] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        fs::create_dir_all(sys.path().join("class/net/wlan0/phy80211")).unwrap();
        fs::create_dir_all(sys.path().join("class/net/eth0")).unwrap();
        fs::create_dir_all(own.path().join("net")).unwrap();
        let table = "Inter-| sta-|   Quality        |\n face | tus | link level noise |\n wlan1: 0000   54.  -56.  -256\n";
        fs::write(own.path().join("net/wireless"), table).unwrap();
        let wireless = |name| is_wireless(name, sys.path(), own.path());
        assert_eq!(
            ["wlan0", "wlan1", "eth0", "wlan"].map(wireless),
            [true, true, false, false]
        );
    }

    #[test]
    fn what_is_not_owned_is_not_enforced_and_the_words_are_two() {
        assert_eq!(unenforced("lo", Own::None, 1), [Unenforced::NotOwned]);
        assert_eq!(unenforced("lo", Own::Class, 1), []);
        for own in [Own::Class, Own::None] {
            assert_eq!(own.to_string().parse(), Ok(own));
        }
        assert!("all".parse::<Own>().is_err());
    }
}

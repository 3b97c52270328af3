//! What is claimed of the reservations that were tried: nothing of those that were not.

use laxity_lab::bench::{Draft, Holes, Said};

use super::{BY_SEED, TEXT, Tried};

/// A claim.
pub(super) struct Claim {
    key: &'static str,
    /// What its words leave out.
    pub(super) but: String,
    pub(super) holds: bool,
    /// Why that it holds shows nothing.
    pub(super) open: Option<String>,
    pub(super) seen: String,
}

impl Claim {
    /// What is not so was seen, and is certain.
    pub(super) fn tell(self, draft: &mut Draft<'_>) {
        let said = Said::default().but(self.open);
        let judged = (self.holds, !self.holds);
        let holes: Holes<'_> = &[("seen", &self.seen), ("but", &self.but)];
        draft.claim_here(self.key, judged, holes, &said);
    }
}

/// Of what is far from the lines, and of all.
pub(super) fn claims(all: &[Tried]) -> Vec<Claim> {
    far(all).into_iter().chain(near(all)).collect()
}

fn far(all: &[Tried]) -> Option<Claim> {
    let far = || all.iter().filter(|tried| !tried.near);
    let plain =
        |tried: &&Tried| tried.study_lines == tried.served() && tried.exact == tried.served();
    let (right, of) = (far().filter(plain).count(), far().count());
    (of > 0).then(|| Claim {
        key: "far",
        but: String::new(),
        holds: right == of,
        open: None,
        seen: format!("{right} of {of}"),
    })
}

fn near(all: &[Tried]) -> Option<Claim> {
    let (left_out, judged): (Vec<&Tried>, Vec<&Tried>) =
        all.iter().partition(|tried| tried.name == BY_SEED);
    let differ = judged.iter().filter(|tried| tried.exact != tried.served());
    let unexplained = differ.clone().filter(|one| one.accounted_for().is_none());
    let unexplained: Vec<&str> = unexplained.map(|tried| tried.name.as_str()).collect();
    let of = judged.len();
    let seen = match unexplained.is_empty() {
        true => format!("{} of {of} differ", differ.count()),
        false => format!("not accounted for: {}", unexplained.join(", ")),
    };
    let if_so = |so: bool, key: &str| so.then(|| TEXT.say(key, &[]));
    let only_chosen = judged.iter().all(|tried| tried.chose);
    (of > 0).then(|| Claim {
        key: "near",
        but: if_so(!left_out.is_empty(), "map-left-out").unwrap_or_default(),
        holds: unexplained.is_empty(),
        open: if_so(only_chosen, "map-only-chosen"),
        seen,
    })
}

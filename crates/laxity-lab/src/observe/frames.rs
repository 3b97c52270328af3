//! Which lost samples the lost frames of a player rest on. A call plays one frame, which is heard some calls later, or before the call is over if that
//! is late.

use std::collections::VecDeque;

/// The frames that did not arrive, and the calls that were late with their samples: both in the order of time.
#[derive(Default)]
pub(super) struct Frames {
    /// Of each such call whose frame has not been heard, whether a halt excuses some of its samples.
    late: VecDeque<bool>,
    /// Frames that were heard before their calls were over.
    heard: u64,
}

impl Frames {
    /// A call is over that was late with samples, of which a halt excuses some, or none.
    pub(super) fn late(&mut self, is_excused: bool) {
        self.late.push_back(is_excused);
    }

    /// So many more frames did not arrive. Of how many it is known by now what they rest on, and how many of these are excused.
    pub(super) fn heard(&mut self, more: u64) -> [u64; 2] {
        self.heard += more;
        let known = self.late.len().min(self.heard as usize);
        self.heard -= known as u64;
        let excused = self.late.drain(..known).filter(|excused| *excused);
        [known as u64, excused.count() as u64]
    }

    /// Those that were heard of calls that are not over.
    pub(super) const fn left(&self) -> u64 {
        self.heard
    }
}

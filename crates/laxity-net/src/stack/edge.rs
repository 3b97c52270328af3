//! The right edge of what a peer may send.

use super::wire;

/// Where the window ends that was last told to a peer: its scale may be one or none.
///
/// Who has sent all that he may, and of which something was lost, acknowledges with the number behind all that: at this very edge, outside of the window by the letter of RFC 9293 (3.10.7.4), so
/// that smoltcp takes no notice. If both ends do so at once, neither learns that what it sent has arrived: each sends all of it again, at times that are ever farther apart, until its
/// patience ends. Linux takes what is acknowledged at the edge, and so do we.
pub(super) struct Edge {
    at: Option<[u32; 2]>,
    scale: u32,
}

impl Edge {
    /// Of an end that can receive so much, whose scale smoltcp chooses by that.
    pub(super) const fn of(receivable: usize) -> Self {
        let bits = usize::BITS - receivable.leading_zeros();
        Self {
            at: None,
            scale: bits.saturating_sub(16),
        }
    }

    /// This packet was sent.
    pub(super) fn tell(&mut self, packet: &[u8]) {
        if let Some((acknowledged, window)) = wire::told(packet) {
            let window = u32::from(window);
            let ends =
                [window, window << self.scale].map(|window| acknowledged.wrapping_add(window));
            self.at = (window > 0).then_some(ends);
        }
    }

    /// A packet that acknowledges something at the edge, and does nothing else, is one within the window.
    pub(super) fn bring_within(&self, packet: &mut [u8]) {
        if let Some(ends) = self.at
            && wire::acknowledges_only(packet).is_some()
        {
            wire::step_back(packet, ends);
        }
    }
}

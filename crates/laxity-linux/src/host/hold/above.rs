//! Who outranks the holder of slots.

use laxity_model::Grade;

use crate::doctor::outranking::{Hidden, above_slots, is_above_slots};
use crate::os::proc::{self, RealTimeThread};
use crate::os::sched::Tid;
use crate::run::ours::is_ours;

/// Whether a thread takes a processor from the holder of slots there, of whom these threads are. Also threads of this process do, and
/// nobody admitted them: only those of laxity itself are expected there.
pub(super) fn is_above(
    thread: &RealTimeThread,
    cpu: usize,
    holders: impl FnOnce(Tid) -> bool,
) -> bool {
    let is_ours = thread.pid == std::process::id() && is_ours(thread.tid);
    let is_expected = thread.of_kernel || is_ours || holders(thread.tid);
    !is_expected && is_above_slots(thread, cpu)
}

/// How firmly slots on a processor are held now, of whose holder these threads are.
pub(super) fn above(cpu: usize, holders: impl Fn(Tid) -> bool) -> Grade {
    let hidden = Hidden::find();
    let threads = proc::real_time_threads();
    let above = above_slots(&threads, hidden.as_ref(), |thread| {
        is_above(thread, cpu, &holders)
    });
    Grade::below(std::iter::empty(), &above)
}

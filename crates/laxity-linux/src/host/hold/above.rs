//! Who outranks the holder of slots.

use laxity_model::Grade;
use laxity_model::request::Strangers;

use crate::doctor::outranking::{Hidden, above_slots, is_above_slots};
use crate::os::proc::{self, RealTimeThread};
use crate::os::sched::Tid;
use crate::run::drivers::is_charged;
use crate::run::ours::is_ours;

/// Whether a thread takes a processor from the holder of slots there, whose own are told apart. Also threads of this process do, and
/// nobody admitted them: only those of laxity itself are expected there, and drivers that admission was told of and that are bounded.
pub(super) fn is_above(
    thread: &RealTimeThread,
    cpu: usize,
    is_holders: impl FnOnce(&RealTimeThread) -> bool,
) -> bool {
    let is_expected = |tid| is_ours(tid) || is_charged(tid, cpu);
    let is_ours = thread.pid == std::process::id() && is_expected(thread.tid);
    // Whose it is may have to be read: of those alone who would count.
    is_above_slots(thread, cpu) && !(thread.of_kernel || is_ours || is_holders(thread))
}

/// Who outranks slots on a processor that this thread has, or is about to have.
pub(in crate::host) fn strangers(cpu: usize, holder: Tid) -> Strangers {
    let hidden = Hidden::find();
    let threads = proc::real_time_threads();
    above_slots(&threads, hidden.as_ref(), |thread| {
        is_above(thread, cpu, |thread| thread.tid == holder)
    })
}

/// How firmly slots on a processor are held now by this thread.
pub(super) fn above(cpu: usize, holder: Tid) -> Grade {
    Grade::below(std::iter::empty(), &strangers(cpu, holder))
}

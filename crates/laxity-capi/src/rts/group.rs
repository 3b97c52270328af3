//! What upcalls have to do with each other: budgets that several share, and how long chains take.

use std::ffi::c_int;

use laxity::upcalls::Group;
use laxity::{Service, Span};

use super::wanted::{invalid, text};
use super::{all, executor, named, outside, rts_budget, rts_set, rts_usage, running};
use crate::edge::{self, Failure, edge};

/// The group of this number, which is never 0.
pub(super) fn group(number: c_int) -> Result<Group, Failure> {
    let place = usize::try_from(number).ok();
    let place = place.and_then(|number| number.checked_sub(1));
    let found = place.and_then(|place| all().own().groups.get(place).cloned().flatten());
    let unknown = || format!("{number} is no group, or its number was given back");
    found.ok_or_else(|| Failure::new(libc::EBADF, unknown()))
}

/// Tells how long an upcall takes at the longest.
///
/// # Safety
///
/// `bound_ns` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_bound(rtu: c_int, bound_ns: *mut u64) -> c_int {
    edge(|| {
        // SAFETY: the caller says that it is null or points to a number.
        let bound_ns = unsafe { bound_ns.as_mut() }.ok_or(Failure::null("bound_ns"))?;
        let named = named(rtu)?;
        *bound_ns = outside(running()?)?.bound(named.paced()?)?.as_nanos();
        Ok(())
    })
}

/// Makes a group.
///
/// # Safety
///
/// The pointers are null or point to what they say, what `budget` points to is as long as its field `size` says, and its name ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_group(budget: *const rts_budget, group: *mut c_int) -> c_int {
    edge(|| {
        // SAFETY: the caller says that it is null or points to a number.
        let group = unsafe { group.as_mut() }.ok_or(Failure::null("group"))?;
        *group = 0;
        // SAFETY: the caller says so.
        let budget = unsafe { edge::sized(budget, "budget") }?;
        if budget.reserved != 0 {
            return Err(invalid("meaning of `reserved`", budget.reserved, "say 0"));
        }
        // SAFETY: the caller says that it ends.
        let name = unsafe { text(budget.name, "group") }?;
        let service = Service::from_nanos(budget.service_ns);
        let made = executor()?.group(&name, service, Span::from_nanos(budget.period_ns))?;
        let groups = &mut all().own().groups;
        let free = groups.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            groups.push(None);
            groups.len() - 1
        });
        groups[place] = Some(made);
        *group = place as c_int + 1;
        Ok(())
    })
}

/// Gives a group's number back.
#[unsafe(no_mangle)]
pub extern "C" fn rts_ungroup(group: c_int) -> c_int {
    edge(|| {
        self::group(group)?;
        if let Some(place) = all().own().groups.get_mut(group as usize - 1) {
            *place = None;
        }
        Ok(())
    })
}

/// Tells what a group's upcalls have done, and which they are.
///
/// # Safety
///
/// `usage` is null or points to as many bytes as its field `size` says, and `rtus` is null or points to a set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_usage_of(
    group: c_int,
    usage: *mut rts_usage,
    rtus: *mut rts_set,
) -> c_int {
    edge(|| {
        // SAFETY: the caller says so.
        unsafe { edge::writable(usage, "usage") }?;
        let group = self::group(group)?;
        // SAFETY: the caller says that it is null or points to a set.
        if let Some(rtus) = unsafe { rtus.as_mut() } {
            *rtus = all().set_of(|named| named.group.as_ref() == Some(&group));
        }
        let seen = group.counts();
        let told = rts_usage {
            size: 0,
            reserved: 0,
            used_ns: seen.used.as_nanos(),
            waits: seen.waits,
        };
        // SAFETY: the caller says so.
        unsafe { edge::tell(usage, told, "usage") }
    })
}

//! Threads of ours that do not get ready, and who keeps the processor from them.

use laxity_model::request::Strangers;
use laxity_model::{HostError, Instant, Service, Span};

use crate::doctor::outranking::{Hidden, above_slots};
use crate::os::{clock, proc};

/// No thread takes longer than this to get ready; one that does is starved by somebody above it.
const READY_WITHIN: Span = Span::from_secs(5);

/// Waits until so many are ready; `wait` does that until an instant, and tells whether they are.
///
/// # Errors
///
/// What `wait` says; [`HostError::Disturbed`] with the real-time threads of others that were at work in the second half of the time, if there are any.
pub(super) fn await_all(
    expected: usize,
    ready: impl Fn() -> usize,
    mut wait: impl FnMut(Instant) -> Result<bool, HostError>,
) -> Result<(), HostError> {
    let begin = clock::now();
    if wait(begin + READY_WITHIN / 2)? {
        return Ok(());
    }
    let before = others();
    if wait(begin + READY_WITHIN)? {
        return Ok(());
    }
    let ready = ready();
    let why = format!("only {ready} of {expected} threads were ready within {READY_WITHIN}");
    Err(told(why, &before, &others()))
}

/// The real-time threads of others, wherever they run.
fn others() -> Strangers {
    let hidden = Hidden::find();
    above_slots(&proc::real_time_threads(), hidden.as_ref(), |thread| {
        !thread.of_kernel && thread.pid != std::process::id()
    })
}

/// Who starves a thread has its processor most of the time.
fn told(why: String, before: &Strangers, after: &Strangers) -> HostError {
    let since = |name: &str| {
        let of = |all: &Strangers| {
            let mut seen = all.seen.iter();
            seen.find(|one| one.name == name).and_then(|one| one.had)
        };
        let had = of(after).zip(of(before));
        // One that came meanwhile, or of whom nobody says what it had, may have had all.
        had.map_or(Service::MAX, |(now, then)| now.saturating_sub(then))
    };
    let names: Vec<&str> = after.active_since(before).collect();
    let had = names.iter().fold(Service::ZERO, |all, name| {
        all.checked_add(since(name)).unwrap_or(Service::MAX)
    });
    let names = match had.as_dedicated_span() >= READY_WITHIN / 4 {
        true => names,
        false => Vec::new(),
    };
    match (&names[..], &after.unseen) {
        ([], None) => HostError::Failed(why),
        ([], Some(unseen)) => {
            HostError::Disturbed(format!("{why}, and not all can be seen: {unseen}"))
        }
        (names, _) => {
            let names = names.join(", ");
            HostError::Disturbed(format!("{why}: at work meanwhile: {names}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::request::Stranger;

    use super::*;

    #[test]
    fn who_was_at_work_while_threads_did_not_get_ready_is_named() {
        let seen = |ms, unseen: Option<&str>| Strangers {
            seen: vec![Stranger {
                name: "hog".to_owned(),
                had: Some(Service::from_millis(ms)),
            }],
            unseen: unseen.map(str::to_owned),
            ..Strangers::default()
        };
        let told = |ms, unseen| told("two".to_owned(), &seen(1, None), &seen(ms, unseen));
        let named = HostError::Disturbed("two: at work meanwhile: hog".to_owned());
        assert_eq!(told(2_500, None), named);
        let failed = HostError::Failed("two".to_owned());
        assert_eq!([1, 900].map(|ms| told(ms, None)), [failed.clone(), failed]);
        assert!(
            matches!(told(1, Some("hidden")), HostError::Disturbed(why) if why.contains("hidden"))
        );
    }
}

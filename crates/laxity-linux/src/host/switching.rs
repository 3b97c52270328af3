//! What switching to a slot and back costs on a processor; where that cannot be measured, who was at work there, and what would do.

use laxity_model::enforce::Switching;
use laxity_model::request::Strangers;
use laxity_model::{HostError, Outside};

use super::hold::strangers;
use crate::enforce::slots::calibrate::calibrate;
use crate::os::sched::Tid;

/// What may be done where it cannot be measured.
const REMEDY: &str = "try again when less runs there, name another processor, or reserve by `deadline` (`--enforcer deadline`), for which nothing is measured";

/// Measures it in 0.1 s, or up to a second. `left`: what became of that for which it is, in words.
///
/// # Errors
///
/// [`HostError`]; [`HostError::Disturbed`] with those who outrank slots there and were at work meanwhile.
pub(super) fn measure(cpu: usize, outside: Outside, left: &str) -> Result<Switching, HostError> {
    let own = Tid::current();
    let before = strangers(cpu, own);
    calibrate(cpu, outside).map_err(|error| match error {
        HostError::Disturbed(why) => {
            let at_work = at_work(&before, &strangers(cpu, own));
            HostError::Disturbed(format!("{why}; {at_work}; {left}: {REMEDY}"))
        }
        error => error,
    })
}

/// Who of them had the processor since, in words.
fn at_work(before: &Strangers, after: &Strangers) -> String {
    let names: Vec<&str> = after.active_since(before).collect();
    let who = match names[..] {
        [] => "nobody was seen at work there above slots".to_owned(),
        _ => format!("at work there above slots: {}", names.join(", ")),
    };
    match &after.unseen {
        None => who,
        Some(why) => format!("{who}, and not all can be seen: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::Service;
    use laxity_model::request::Stranger;

    use super::*;

    #[test]
    fn who_was_at_work_is_named_and_who_slept_is_not() {
        let had = |busy_ms, unseen: Option<&str>| {
            let one = |name: &str, ms| Stranger {
                name: name.to_owned(),
                had: Some(Service::from_millis(ms)),
            };
            Strangers {
                seen: vec![one("hog", busy_ms), one("watchdog", 7)],
                unseen: unseen.map(str::to_owned),
                ..Strangers::default()
            }
        };
        let told = |busy_ms, unseen| at_work(&had(1, None), &had(busy_ms, unseen));
        assert_eq!(told(500, None), "at work there above slots: hog");
        let nobody = "nobody was seen at work there above slots";
        assert_eq!(told(1, None), nobody);
        let hidden = told(1, Some("/proc hides them"));
        assert_eq!(
            hidden,
            format!("{nobody}, and not all can be seen: /proc hides them")
        );
    }
}

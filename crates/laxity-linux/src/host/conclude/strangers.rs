//! Who of others could have taken a processor, and who of those that were admitted took more of it than they might.

use super::finding::Finding;
use super::{Evidence, Sighting, TENTH};

impl Evidence<'_> {
    /// The drivers above the slots there that took longer than was charged for them.
    fn overlong(&self, processor: usize, findings: &mut Vec<Finding>) {
        let cpu = self.cpus[processor];
        for (driver, at) in &self.seen.overlong {
            if !driver.may_be_on(cpu) {
                continue;
            }
            let [took, charged] = [driver.overlong.took, driver.overlong.charged]
                .map(|service| service.as_dedicated_span().rounded(TENTH));
            let (name, seen) = (&driver.name, self.seen_at(Some(*at)));
            let text = format!(
                "{name} ranks above the slot on its processor, and takes longer than was said of it: {took} for what was charged {charged}, {seen}"
            );
            findings.push(Finding {
                only_there: true,
                ..Finding::against_slots(cpu, text)
            });
        }
    }

    /// Who ranks as high as slots there or higher, whether there are any or not.
    pub(super) fn strangers(&self, processor: usize, findings: &mut Vec<Finding>) {
        self.overlong(processor, findings);
        let cpu = self.cpus[processor];
        let all = self.above(cpu).filter(|seen| !seen.is_idle(cpu));
        let (in_time, late): (Vec<_>, Vec<_>) = all.partition(|seen| self.came_in_time(seen));
        for is_as_given in [true, false] {
            let all = in_time.iter().copied();
            let told = self.named(all.filter(|seen: &&Sighting| seen.is_as_given() == is_as_given));
            if !told.is_empty() {
                let text = format!("ranked above the slot on its processor: {told}");
                let found = Finding::against_slots(cpu, text);
                let found = Finding {
                    only_there: is_as_given,
                    ..found
                };
                let text = format!("could have taken processor {cpu}: {told}");
                findings.push(found.or_without_slots(text));
            }
        }
        if !late.is_empty() {
            let named = self.named(late.into_iter());
            let [slot, none] = [
                "ranked above the slot on its processor".to_owned(),
                format!("been able to take processor {cpu}"),
            ]
            .map(|what| format!("may have {what}: {named}, when it was over"));
            findings.push(Finding::of_doubt(cpu, slot).or_without_slots(none));
        }
        if self.seen.more > 0 {
            let text = format!("and {} more of others", self.seen.more);
            findings.push(Finding::against_slots(cpu, text));
        }
        let who = [
            "who outranks the slot".to_owned(),
            format!("who could have taken processor {cpu}"),
        ];
        if let Some(why) = &self.seen.unseen {
            let [slot, none] = who.each_ref().map(|who| format!("cannot see {who}: {why}"));
            findings.push(Finding::against_slots(cpu, slot).or_without_slots(none));
        }
        if let Some(why) = &self.seen.doubted {
            let [slot, none] = who.map(|who| format!("{who} may have gone unseen: {why}"));
            findings.push(Finding::of_doubt(cpu, slot).or_without_slots(none));
        }
    }
}

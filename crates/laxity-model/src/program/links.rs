//! What upcalls of a program have to do with others of their executor.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Program;
use crate::executor::Unschedulable;
use crate::executor::members::{InGroup, Member, Set, can_link};
use crate::executor::share::Share;
use crate::{ActivityId, ExecutorId, PortId, Service, Span};

/// What an upcall has to do with others of its executor.
#[derive(Clone, Default, Debug)]
pub struct Links {
    /// Here arrives what releases it: the end of a call of the one that it comes after.
    pub after: Option<PortId>,
    /// There its own calls arrive when they are over: one port of each that comes after it.
    pub before: Vec<PortId>,
    /// With whom it has its service together.
    pub group: Option<Group>,
}

/// Upcalls that have one budget together: in each period they get no more than that, and what is over waits.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name in what is said of it.
    pub name: String,
    /// What they have.
    pub share: Arc<Share>,
}

impl Program {
    /// A group of this budget, whose periods are counted from when the first upcall begins; `None` where the budget is zero, or more than the period.
    #[must_use]
    pub fn group(&self, name: &str, budget: Service, period: Span) -> Option<Group> {
        let share = Share::new(budget, period, self.epoch.clone())?;
        Some(Group {
            name: name.to_string(),
            share: Arc::new(share),
        })
    }

    /// Says what an upcall on an executor has to do with others there. Its body is to be [made](super::upcall::Upcall::linked) with the same.
    pub fn link(&mut self, activity: ActivityId, links: Links) {
        self.links.push((activity, links));
    }

    /// With whom an upcall has its service together, if with anybody.
    pub fn group_of(&self, activity: ActivityId) -> Option<&Group> {
        self.links_of(activity)?.group.as_ref()
    }

    fn links_of(&self, activity: ActivityId) -> Option<&Links> {
        let mut links = self.links.iter();
        links.find_map(|(known, links)| (*known == activity).then_some(links))
    }

    /// Whose calls arrive at a port when they are over.
    fn releasers(&self, port: PortId) -> impl Iterator<Item = ActivityId> {
        let releases = self.links.iter();
        let releases = releases.filter(move |(_, links)| links.before.contains(&port));
        releases.map(|(releaser, _)| *releaser)
    }

    /// Those with tasks on an executor, and what they have to do with each other.
    pub fn members_on(&self, executor: ExecutorId) -> Set<'_> {
        let tasks = self.tasks_on(executor);
        let member = tasks.map(|(id, task)| {
            let links = self.links_of(id);
            let after = links.and_then(|links| self.releasers(links.after?).next());
            let group = links.and_then(|links| links.group.as_ref());
            Member {
                name: &self.activities[id.index()].name,
                id: u64::from(id.0),
                task: Some(task),
                after: after.map(|before| u64::from(before.0)),
                group: group.map(|group| InGroup {
                    name: &group.name,
                    share: &group.share,
                }),
                is_woken: false,
                is_polled: false,
            }
        });
        member.collect()
    }

    /// Whether all of these can have to do with each other as they ask for.
    pub(super) fn can_link(&self, all: &Set<'_>) -> Result<(), Unschedulable> {
        for member in all.members() {
            let refused = |reason| Unschedulable {
                bottleneck: all.index(member.id),
                reason,
            };
            let mut links = self.links.iter();
            let port = links.find(|(id, _)| u64::from(id.0) == member.id);
            let port = port.and_then(|(_, links)| links.after);
            let before = member.after.and_then(|before| all.member(before));
            let releasers = port.map(|port| self.releasers(port).count());
            if releasers.is_some_and(|releasers| releasers != 1 || before.is_none()) {
                let reason = "it comes after another one, and no upcall of its executor, or more than one, releases it";
                return Err(refused(reason.to_string()));
            }
            let (Some(task), group) = (member.task, member.group) else {
                continue;
            };
            let asked = (task.longest_region(), task.period());
            can_link(asked, group.map(|group| group.share), before).map_err(refused)?;
        }
        Ok(())
    }
}

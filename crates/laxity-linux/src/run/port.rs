//! Live ports: a counter that threads wait on, and a queue without locks beside it where arrivals have payloads.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

use laxity_model::base::arrivals::Arrivals;
use laxity_model::base::port::{Arrival, PortKind, PortUsage};
use laxity_model::{HostError, Instant, PortId};

use super::semaphore::{Semaphore, Taken};
use crate::os::clock;
use crate::os::descriptor::{self, Alarm};

/// No doorbell.
const NONE: u32 = u32::MAX;

/// One port.
pub(crate) struct Port {
    /// As many as can be taken.
    pub(crate) permits: Semaphore,
    queue: Option<Arrivals>,
    /// The port into which every arrival is put too.
    doorbell: AtomicU32,
    /// Whoever has its arrivals ring waits here, and has taken none since.
    awaited: AtomicBool,
    arrived: AtomicU64,
    taken: AtomicU64,
    dropped: AtomicU64,
}

impl Port {
    fn new(kind: PortKind) -> Self {
        let (count, queue) = match kind {
            PortKind::Count { initial, most } => (initial.min(most), None),
            PortKind::Queue { capacity } => (0, Some(Arrivals::new(capacity))),
        };
        Self {
            permits: Semaphore::bounded(count, kind.most()),
            queue,
            doorbell: AtomicU32::new(NONE),
            awaited: AtomicBool::new(false),
            arrived: AtomicU64::new(count.into()),
            taken: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Nobody waits here any more who has it ring.
    pub(crate) fn awaits_no_more(&self) {
        self.awaited.store(false, Ordering::SeqCst);
    }

    /// `false` if it is full.
    fn put(&self, arrival: Arrival) -> bool {
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let room = self.has_taken_in(arrival);
        if !room {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        room
    }

    fn has_taken_in(&self, arrival: Arrival) -> bool {
        // A permit is handed out when the arrival can be found.
        self.queue.as_ref().is_none_or(|queue| queue.put(arrival))
            && self.permits.signal(arrival.at)
    }

    /// The oldest make room for it, as many as it takes; how many those were, and whether it is there. It is not where all that hold the room are being put or taken just now.
    fn put_newest(&self, arrival: Arrival) -> (u64, bool) {
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let mut dropped = 0;
        let mut is_in = self.has_taken_in(arrival);
        while !is_in && self.permits.try_take() == Some(Taken::One) {
            // Whoever has a permit finds an arrival.
            if let Some(queue) = &self.queue {
                queue.take();
            }
            dropped += 1;
            is_in = self.has_taken_in(arrival);
        }
        dropped += u64::from(!is_in);
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
        (dropped, is_in)
    }

    /// What belongs to a permit that the caller has taken, after a wait or at once. What only counts keeps no more than two instants: of the signal that
    /// ended a wait, and of the last.
    pub(crate) fn arrival(&self, has_waited: bool) -> Arrival {
        self.taken.fetch_add(1, Ordering::Relaxed);
        match &self.queue {
            Some(queue) => queue.take(),
            None => Arrival {
                at: match has_waited {
                    true => self.permits.filled(),
                    false => self.permits.last_signal(),
                },
                payload: [0; 2],
            },
        }
    }

    /// What became of its arrivals; exact once no thread uses it any more.
    fn usage(&self) -> PortUsage {
        let usage = PortUsage {
            arrived: self.arrived.load(Ordering::SeqCst),
            taken: self.taken.load(Ordering::SeqCst),
            dropped: self.dropped.load(Ordering::SeqCst),
            queued: self.permits.count().into(),
        };
        debug_assert!(usage.is_conserved(), "a port lost something: {usage:?}");
        usage
    }
}

/// The ports of a run.
#[derive(Default)]
pub(crate) struct Ports {
    ports: Vec<Port>,
    /// Those that a descriptor feeds from outside.
    fed: Vec<(PortId, OwnedFd)>,
}

impl Ports {
    /// Those that a program declares, some of them fed by descriptors.
    pub(crate) fn new(kinds: &[PortKind], fed: Vec<(PortId, OwnedFd)>) -> Result<Self, HostError> {
        let ports: Vec<Port> = kinds.iter().copied().map(Port::new).collect();
        if let Some((id, _)) = fed.iter().find(|(id, _)| id.index() >= ports.len()) {
            return Err(HostError::BadProgram(format!(
                "a descriptor is to feed port {id}, which the program does not have"
            )));
        }
        Ok(Self { ports, fed })
    }

    pub(crate) fn count(&self) -> usize {
        self.ports.len()
    }

    pub(crate) fn get(&self, id: PortId) -> Option<&Port> {
        self.ports.get(id.index())
    }

    /// Something arrives; `None` if there is no such port, `Some(false)` if it is full.
    pub(crate) fn put(&self, id: PortId, arrival: Arrival) -> Option<bool> {
        let port = self.get(id)?;
        let room = port.put(arrival);
        if room {
            self.rings(port, arrival);
        }
        Some(room)
    }

    /// The same, where the oldest make room for it; how many were dropped for that, itself where there was none all the same.
    pub(crate) fn put_newest(&self, id: PortId, arrival: Arrival) -> Option<u64> {
        let port = self.get(id)?;
        let (dropped, is_in) = port.put_newest(arrival);
        if is_in {
            self.rings(port, arrival);
        }
        Some(dropped)
    }

    fn rings(&self, port: &Port, arrival: Arrival) {
        // SeqCst, after the arrival can be taken: see `ring`.
        let doorbell = port.doorbell.load(Ordering::SeqCst);
        if let Some(doorbell) = self.ports.get(doorbell as usize) {
            doorbell.put(Arrival {
                payload: [0; 2],
                ..arrival
            });
        }
    }

    /// Every arrival at the port is put into the doorbell too; whether a descriptor of the program feeds it, `None` if one of them does not exist.
    ///
    /// Whoever puts after this rings; what was put before is found by whoever looks at the port after this: one of the two holds,
    /// whatever the order in which their processors see it.
    pub(crate) fn ring(&self, id: PortId, doorbell: PortId) -> Option<bool> {
        self.get(doorbell)?;
        let port = self.get(id)?;
        port.doorbell.store(doorbell.0.into(), Ordering::SeqCst);
        port.awaited.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Some(self.fed.iter().any(|(fed, _)| *fed == id))
    }

    /// Whether whoever has the port [ring](Self::ring) waits there: to be asked after something was put. Who does not finds that when he waits again.
    pub(crate) fn is_awaited(&self, id: PortId) -> bool {
        let port = self.get(id);
        port.is_some_and(|port| port.awaited.load(Ordering::SeqCst))
    }

    /// Waits for a permit of the port: on its word, or with the program's descriptors that feed it or that ring it.
    pub(crate) fn wait(&self, id: PortId, until: Option<Instant>) -> Result<Taken, HostError> {
        self.wait_with(id, until, &self.fed)
    }

    /// The same, where ports are fed by these.
    pub(crate) fn wait_with<D: AsFd>(
        &self,
        id: PortId,
        until: Option<Instant>,
        fed: &[(PortId, D)],
    ) -> Result<Taken, HostError> {
        let Some(port) = self.get(id) else {
            return Ok(Taken::Closed);
        };
        let concern = fed.iter().filter(|(fed, _)| self.concerns(*fed, id));
        if concern.clone().next().is_none() {
            return Ok(port.permits.take(until));
        }
        // What is left to read of a port that nobody has served is known.
        let is_empty = |id| self.get(id).is_some_and(|port| port.permits.count() == 0);
        let waited = concern.filter(|(fed, _)| is_empty(*fed));
        let wait = |alarm: &Alarm| {
            let waited: Vec<_> = waited.clone().collect();
            let descriptors: Vec<_> = waited.iter().map(|(_, with)| with.as_fd()).collect();
            let ready = descriptor::wait(&descriptors, alarm, until)?;
            for ((fed, _), events) in waited.into_iter().zip(ready) {
                if events != 0 {
                    let at = clock::now();
                    let payload = [events.into(), 0];
                    self.put(*fed, Arrival { at, payload });
                }
            }
            Ok(())
        };
        let taken = port.permits.take_by(until, wait);
        taken.map_err(|error| HostError::Failed(format!("waiting on descriptors: {error}")))
    }

    /// Whether what arrives at the fed port ends a wait for this one.
    fn concerns(&self, fed: PortId, waited: PortId) -> bool {
        let rings = |port: &Port| port.doorbell.load(Ordering::Relaxed) == u32::from(waited.0);
        fed == waited || self.get(fed).is_some_and(rings)
    }

    /// Whether descriptors may have something for whoever waits for this port.
    pub(crate) fn is_fed(&self, id: PortId) -> bool {
        self.fed.iter().any(|(fed, _)| self.concerns(*fed, id))
    }

    /// Ends all waiting, now and in future.
    pub(crate) fn close(&self) {
        for port in &self.ports {
            port.permits.close();
        }
    }

    /// By port; call it when all threads are done.
    pub(crate) fn usage(&self) -> Vec<PortUsage> {
        self.ports.iter().map(Port::usage).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Arrival {
        Arrival {
            at: Instant::from_nanos(number),
            payload: [number, !number],
        }
    }

    #[test]
    fn the_oldest_make_room_for_the_newest() {
        let kinds = [
            PortKind::Queue { capacity: 3 },
            PortKind::Count {
                initial: 0,
                most: 1,
            },
        ];
        let ports = Ports::new(&kinds, Vec::new()).unwrap();
        let (queue, doorbell) = (PortId(0), PortId(1));
        ports.ring(queue, doorbell).unwrap();
        let dropped: Vec<_> = (0..5)
            .map(|number| ports.put_newest(queue, at(number)))
            .collect();
        assert_eq!(dropped, [0, 0, 0, 1, 1].map(Some));
        let port = ports.get(queue).unwrap();
        for number in 2..5 {
            assert_eq!(port.permits.try_take(), Some(Taken::One));
            assert_eq!(port.arrival(false), at(number));
        }
        assert_eq!(port.permits.try_take(), None);
        assert_eq!(ports.usage()[0].dropped, 2);
        assert_eq!(ports.get(doorbell).unwrap().permits.count(), 1);
        assert_eq!(ports.put_newest(PortId(9), at(0)), None);
    }

    #[test]
    fn many_who_put_and_one_who_takes_lose_nothing_uncounted() {
        const EACH: u64 = 20_000;
        let ports = Ports::new(&[PortKind::Queue { capacity: 4 }], Vec::new()).unwrap();
        let port = ports.get(PortId(0)).unwrap();
        let (mut taken, mut newest) = (0, [None; 3]);
        std::thread::scope(|scope| {
            let puts = |who: u64| {
                let ports = &ports;
                move || {
                    (0..EACH)
                        .map(|n| ports.put_newest(PortId(0), at(who * EACH + n)).unwrap())
                        .sum::<u64>()
                }
            };
            let putting = [0, 1, 2].map(|who| scope.spawn(puts(who)));
            while putting.iter().any(|one| !one.is_finished()) || port.permits.count() > 0 {
                if port.permits.try_take() != Some(Taken::One) {
                    continue;
                }
                let [number, check] = port.arrival(false).payload;
                assert_eq!(check, !number);
                // What one thread puts comes in its order.
                let before = &mut newest[(number / EACH) as usize];
                assert!(before.replace(number) < Some(number));
                taken += 1;
            }
            let dropped: u64 = putting.into_iter().map(|one| one.join().unwrap()).sum();
            assert_eq!(taken + dropped, 3 * EACH);
        });
        assert!(ports.usage()[0].is_conserved());
    }
}

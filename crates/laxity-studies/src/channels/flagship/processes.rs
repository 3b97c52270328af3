//! The processes of a run: who receives, who sends, and best effort beside them.

use std::io::{PipeWriter, Write, pipe};
use std::net::{Ipv4Addr, SocketAddr};

use laxity::command::Policy;
use laxity::net::Namespace;
use laxity::net::world::{Between, Queues, World};
use laxity::now;
use laxity_lab::bench::Runner;
use laxity_model::{HostError, Span};

use super::carry::{Arrival, REST, of_line};
use super::flows::{Flow, When};
use super::judge::Judged;
use super::node::{self, Host};
use super::part::{self, Does, END, Part, READY};
use super::rivals::Told;
use super::sockets::Kind;
use super::{Beside, Case, Outcome, Who};
use crate::peers::{Peer, failed, watch};

/// Whoever sends and receives, in the class of channels and elsewhere: above all ordinary threads, as what they carry is.
const PRIORITY: u8 = 5;
/// In the class, as a node; and applications of one.
const NODE_PRIORITY: u8 = 91;
const APPLICATION_PRIORITY: u8 = 90;
/// Best effort is there for so long before the first message.
const LEAD: Span = Span::from_millis(500);
const OURS: &str = "a process of ours";
/// Ports of the two applications, and of best effort.
const PORT: u16 = 7_447;
const LOAD_PORT: u16 = 9_000;

/// A process that waits to be told when.
struct Process {
    peer: Peer,
    tell: PipeWriter,
}

impl Process {
    /// Starts it in a host, and waits until it can be told.
    fn start(
        host: &Namespace,
        name: &str,
        start: impl FnOnce(std::io::PipeReader) -> Result<Peer, HostError> + Send,
    ) -> Result<Self, HostError> {
        let (input, tell) = pipe().map_err(failed(name))?;
        let started = host.within(None, || start(input));
        let peer = started.map_err(failed(name))??;
        let mut process = Self { peer, tell };
        process.is_ready(name)?;
        Ok(process)
    }

    fn is_ready(&mut self, name: &str) -> Result<(), HostError> {
        match self.peer.line()?.trim_end() {
            READY => Ok(()),
            said => Err(failed(name)(format!("it says {said:?}"))),
        }
    }

    fn tell(&mut self, line: &str) -> Result<(), HostError> {
        let told = self.tell.write_all(line.as_bytes());
        told.map_err(failed("a process that was to begin"))
    }
}

/// All of a run.
pub(super) struct Processes {
    case: Case,
    receivers: Vec<Process>,
    /// One for each host, where they have nodes, the far one first.
    nodes: Vec<Process>,
    counters: Vec<Process>,
    /// Of messages and of best effort.
    senders: Vec<Process>,
}

/// Where who runs: the near host and those after it on one processor, the far one on another, by the kernel's numbers.
struct Places<'a> {
    world: &'a World,
    case: Case,
    processors: [usize; 2],
}

impl Places<'_> {
    fn last(&self) -> usize {
        self.world.hosts().len() - 1
    }

    /// The far host's, for control and video.
    fn far(&self) -> Ipv4Addr {
        match self.case.queues {
            Queues::Class => World::IN_CLASS,
            _ => World::address(self.last() as u8),
        }
    }

    /// One of ours, at a host.
    fn own(&self, host: usize, part: Part) -> Result<Process, HostError> {
        let is_load = matches!(part.does, Does::Flood | Does::Count);
        let policy = match is_load {
            true => Policy::Other { nice: 0 },
            false => self.policy(),
        };
        let receives = matches!(part.does, Does::Receive(_) | Does::Count);
        let place = Some((policy, self.processors[usize::from(receives)]));
        self.ours(host, &part::Process::Part(part), place)
    }

    fn ours(
        &self,
        host: usize,
        part: &part::Process,
        place: Option<(Policy, usize)>,
    ) -> Result<Process, HostError> {
        Process::start(&self.world.hosts()[host], OURS, |input| {
            Peer::start(("channels", part), OURS, input, place)
        })
    }

    /// A process for each host with its node, the far one first; the channels of these flows are open.
    fn nodes(&self, flows: &[Flow]) -> Result<Vec<Process>, HostError> {
        let last = self.last();
        let node = |host: usize| {
            let processor = self.processors[usize::from(host == last)];
            let own = part::Process::Host(Host {
                host: host as u8,
                last: last as u8,
                is_shaped: self.case.between != Between::Switch,
                flows: flows.to_vec(),
                processor,
            });
            self.ours(host, &own, Some((self.policy(), processor)))
        };
        let mut nodes: Vec<Process> = (0..=last).rev().map(node).collect::<Result<_, _>>()?;
        // Whoever listens is ready before anybody opens, and all are there before.
        for process in &mut nodes {
            process.tell("\n")?;
            process.is_ready(OURS)?;
        }
        Ok(nodes)
    }

    const fn policy(&self) -> Policy {
        Policy::Fifo(match self.case.queues {
            Queues::Class => NODE_PRIORITY,
            Queues::Node => APPLICATION_PRIORITY,
            Queues::Fifo | Queues::Fair => PRIORITY,
        })
    }

    /// One end of these flows.
    fn end(&self, sends: bool, flows: &[Flow], port: u16) -> Result<Process, HostError> {
        let host = if sends { 0 } else { self.last() };
        let told = Told {
            sends,
            hosts: [World::address(0), self.far()],
            port,
            flows,
        };
        if let Some(command) = told.command(self.case.who) {
            let command = command.map_err(HostError::Failed)?;
            let place = Some((self.policy(), self.processors[usize::from(!sends)]));
            let name = self.case.who.key();
            return Process::start(&self.world.hosts()[host], name, |input| {
                Peer::of(command, name, input, place)
            });
        }
        let [flow] = flows else {
            return Err(HostError::BadProgram("the kernel has no session".into()));
        };
        let does = match sends {
            true => Does::Send(*flow),
            false => Does::Receive(*flow),
        };
        let kind = match self.case.who {
            Who::Tcp => Kind::Tcp,
            _ => Kind::Udp,
        };
        let address = SocketAddr::from((self.far(), port));
        self.own(
            host,
            Part {
                does,
                kind,
                address,
            },
        )
    }

    /// Best effort over each link.
    fn load(&self, sends: bool, kind: Kind) -> Result<Vec<Process>, HostError> {
        let link = |link: usize| {
            let does = if sends { Does::Flood } else { Does::Count };
            let address = SocketAddr::from((World::address(link as u8 + 1), LOAD_PORT));
            let host = if sends { link } else { link + 1 };
            self.own(
                host,
                Part {
                    does,
                    kind,
                    address,
                },
            )
        };
        (0..self.case.between.links()).map(link).collect()
    }
}

impl Processes {
    /// Starts all of them, receivers first.
    pub(super) fn start(host: &Runner<'_>, world: &World, case: Case) -> Result<Self, HostError> {
        let Runner::Live(live, _) = host else {
            return Err(HostError::CannotRun("the twin has no processes".into()));
        };
        let config = live.config();
        let own = config.processors.first().copied();
        let places = Places {
            world,
            case,
            processors: [own.unwrap_or(config.external), config.external],
        };
        let (all, each): ([Flow; 3], [[Flow; 1]; 2]) = (
            [Flow::Control, Flow::Video, Flow::Bulk],
            [[Flow::Control], [Flow::Video]],
        );
        // A session for all where best effort is in it, else a process each.
        let (sessions, load): (Vec<&[Flow]>, _) = match case.beside {
            Beside::Own => (vec![&all], None),
            Beside::Udp => (
                each.iter().map(<[Flow; 1]>::as_slice).collect(),
                Some(Kind::Udp),
            ),
            Beside::Tcp => (
                each.iter().map(<[Flow; 1]>::as_slice).collect(),
                Some(Kind::Tcp),
            ),
        };
        let ends = |sends| -> Result<Vec<Process>, HostError> {
            if case.who == Who::Channels {
                return Ok(Vec::new());
            }
            let sessions = sessions.iter().zip(PORT..);
            let ends = sessions.map(|(flows, port)| places.end(sends, flows, port));
            ends.collect()
        };
        let loads = |sends| load.map_or(Ok(Vec::new()), |kind| places.load(sends, kind));
        let nodes = match case.who {
            Who::Channels => places.nodes(&sessions.concat())?,
            _ => Vec::new(),
        };
        let (receivers, counters) = (ends(false)?, loads(false)?);
        let mut senders = ends(true)?;
        senders.extend(loads(true)?);
        Ok(Self {
            case,
            receivers,
            nodes,
            counters,
            senders,
        })
    }

    /// Has them begin, and tells what came of it.
    pub(super) fn run(mut self, host: &mut Runner<'_>) -> Result<Outcome, HostError> {
        let from = now() + LEAD;
        let when = When {
            from,
            until: from + self.case.length,
        };
        let all = self.receivers.iter_mut().chain(&mut self.nodes);
        let all = all.chain(&mut self.counters);
        for process in all.chain(&mut self.senders) {
            process.tell(&when.line())?;
        }
        let halts = watch(host, when.until + REST)?;
        let (mut arrivals, mut used) = (Vec::new(), Vec::new());
        for receiver in self.receivers.iter_mut().chain(&mut self.nodes) {
            for line in receiver.peer.lines_to(END)? {
                match (of_line(&line), node::of_line(&line)) {
                    (Some(arrival), _) => arrivals.push(arrival),
                    (None, Some(nanos)) => used.push(nanos),
                    (None, None) => return Err(failed("a receiver")(&line)),
                }
            }
        }
        let mut counts = Vec::new();
        for counter in &mut self.counters {
            let lines = counter.peer.lines_to(END)?;
            let count: u64 = lines.concat().trim().parse().map_err(failed("a counter"))?;
            counts.push(count);
        }
        let bytes = match counts.into_iter().min() {
            Some(least) => least,
            None => bulk(when, &arrivals),
        };
        let millis = self.case.length.as_nanos() / 1_000_000;
        Ok(Outcome {
            flows: Flow::APPLICATIONS.map(|flow| Judged::of(flow, when, &arrivals, |_, _| false)),
            undisturbed: Flow::APPLICATIONS
                .map(|flow| Judged::of(flow, when, &arrivals, |from, to| halts.overlap(from, to))),
            best_effort: (bytes * 8 * 1_000).checked_div(millis).unwrap_or_default(),
            node_ppm: (used.into_iter().max()).and_then(|most| most.checked_div(millis)),
        })
    }
}

/// What came in time of best effort by the same calls, in bytes.
fn bulk(when: When, arrivals: &[Arrival]) -> u64 {
    let came = |one: &&Arrival| one.flow == Flow::Bulk && (when.from..when.until).contains(&one.at);
    (arrivals.iter().filter(came).count() * Flow::Bulk.bytes()) as u64
}

//! What is said, and its bytes: little-endian numbers, and texts behind their lengths.

use alloc::string::String;
use alloc::vec::Vec;

use super::Item;
use crate::analysis::{Preemption, Task, TaskError};
use crate::executor::HANDLERS;
use crate::executor::linked::Linked;
use crate::{Service, Span};

/// No message is longer.
pub const MOST_BYTES: usize = 1 << 15;
/// What each message begins with; another version is another number.
const VERSION: u32 = 0x4c58_0002;
/// No name is longer; what is over is cut off.
const NAME: usize = 64;
/// No reason is longer.
const REASON: usize = 2_048;
/// Among indices: none.
const NONE: u16 = u16::MAX;

/// What a process says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// It asks for a seat, and is told whether it has one: [`Answer::Welcome`].
    Join {
        /// Of its executor.
        name: String,
    },
    /// It has a seat, and what the coordinator before has granted.
    Resume {
        /// Of its executor.
        name: String,
        /// Which.
        seat: u16,
        /// All that it has.
        items: Vec<Item>,
    },
    /// All that it is to have from now on.
    Hold {
        /// In place of what it has.
        items: Vec<Item>,
        /// Where not, it only asks whether it could.
        keep: bool,
    },
    /// It has done what was to be done after a process [went](Answer::Gone) that had this seat. Not answered.
    Settled(u16),
    /// Who is there: the first of this seat or a later one, [`Answer::Process`], or [`Answer::End`].
    List(u16),
}

/// What a coordinator says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It has a seat.
    Welcome {
        /// Which.
        seat: u16,
        /// The FIFO priority of all executors there; 0: they are ordinary threads.
        priority: u8,
    },
    /// It has what it asked for, or could. The bounds are those of its items, in their order.
    Held(Vec<Span>),
    /// Somebody would be late, or have more than his share.
    No {
        /// Who.
        bottleneck: Bottleneck,
        /// A sentence, with the amounts.
        reason: String,
    },
    /// What was asked for is not done, whatever was asked for.
    Refused(String),
    /// Neither yes nor no: it may be asked for again.
    NotYet(String),
    /// A process has gone that had upcalls. What it had is kept until all have [settled](Ask::Settled) that, or a limit has passed. Nobody asked.
    Gone {
        /// The seat that it had.
        seat: u16,
        /// By the kernel's number.
        process: u32,
    },
    /// One of those who are there.
    Process(Told),
    /// There are no more.
    End,
}

/// Who would be late.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bottleneck {
    /// One of those that were asked for, by its index.
    Own(u16),
    /// One of another process.
    Other(String),
    /// All together.
    All,
}

/// What a coordinator tells of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// By the kernel's number.
    pub process: u32,
    /// Whose it is.
    pub user: u32,
    /// Its seat.
    pub seat: u16,
    /// Of its executor.
    pub name: String,
    /// Whether it is there.
    pub presence: Presence,
    /// What it has.
    pub items: Vec<Item>,
}

/// Whether a process is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// It is.
    Here = 0,
    /// It has gone, and what it had is kept for a while.
    Gone = 1,
    /// The coordinator before knew it, and this one does not know yet what it has.
    Awaited = 2,
    /// It is there, and stopped by a signal or a debugger.
    Stopped = 3,
}

/// The bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Garbled {
    /// It is of another version, or nothing at all.
    #[error("the message is of another version of laxity")]
    Version,
    /// It is cut off, too long, or says what nothing is.
    #[error("the message says nothing that can be understood")]
    Nonsense,
    /// Numbers that are no task.
    #[error("an item of the message is no task: {0}")]
    Task(#[from] TaskError),
}

struct Writer(Vec<u8>);

impl Writer {
    fn new(kind: u8) -> Self {
        let mut bytes = Vec::from(VERSION.to_le_bytes());
        bytes.push(kind);
        Self(bytes)
    }

    fn put(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn word(self, value: u64) -> Self {
        self.put(&value.to_le_bytes())
    }

    fn short(self, value: u16) -> Self {
        self.put(&value.to_le_bytes())
    }

    fn text(self, text: &str, most: usize) -> Self {
        let text = &text[..text.floor_char_boundary(most)];
        self.short(text.len() as u16).put(text.as_bytes())
    }

    fn items(self, items: &[Item]) -> Self {
        let all = self.short(items.len().min(usize::from(NONE)) as u16);
        items.iter().fold(all, Self::item)
    }

    fn item(self, item: &Item) -> Self {
        let Linked {
            task,
            after,
            defers,
            calls,
            wakes,
            quanta,
            // Where there is a coordinator nobody is.
            polled: _,
        } = item.linked;
        let (kind, longest, last) = match task.preemption() {
            Preemption::Anywhere => (0, Service::ZERO, Service::ZERO),
            Preemption::Floating { longest } => (1, longest, Service::ZERO),
            Preemption::Fixed { longest, last } => (2, longest, last),
            Preemption::Never => (3, Service::ZERO, Service::ZERO),
        };
        let after = after.and_then(|index| u16::try_from(index).ok());
        self.text(&item.name, NAME)
            .word(task.cost().as_nanos())
            .word(task.period().as_nanos())
            .word(task.deadline().as_nanos())
            .word(task.jitter().as_nanos())
            .put(&[kind])
            .word(longest.as_nanos())
            .word(last.as_nanos())
            .short(after.unwrap_or(NONE))
            .put(&[u8::from(defers)])
            .word(calls.into())
            .word(wakes.into())
            .word(quanta)
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Result<(u8, Self), Garbled> {
        let mut reader = Self(bytes);
        let version = reader.array().map_err(|_| Garbled::Version)?;
        if u32::from_le_bytes(version) != VERSION {
            return Err(Garbled::Version);
        }
        Ok((reader.byte()?, reader))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Garbled> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Garbled::Nonsense)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Garbled> {
        <[u8; N]>::try_from(self.take(N)?).map_err(|_| Garbled::Nonsense)
    }

    fn byte(&mut self) -> Result<u8, Garbled> {
        self.array().map(|[byte]| byte)
    }

    fn short(&mut self) -> Result<u16, Garbled> {
        self.array().map(u16::from_le_bytes)
    }

    fn word(&mut self) -> Result<u64, Garbled> {
        self.array().map(u64::from_le_bytes)
    }

    fn number(&mut self) -> Result<u32, Garbled> {
        u32::try_from(self.word()?).map_err(|_| Garbled::Nonsense)
    }

    fn flag(&mut self) -> Result<bool, Garbled> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Garbled::Nonsense),
        }
    }

    fn text(&mut self, most: usize) -> Result<String, Garbled> {
        let length = usize::from(self.short()?);
        if length > most {
            return Err(Garbled::Nonsense);
        }
        let text = core::str::from_utf8(self.take(length)?);
        text.map(String::from).map_err(|_| Garbled::Nonsense)
    }

    fn items(&mut self) -> Result<Vec<Item>, Garbled> {
        let count = usize::from(self.short()?);
        if count > HANDLERS {
            return Err(Garbled::Nonsense);
        }
        let items: Vec<Item> = (0..count).map(|_| self.item()).collect::<Result<_, _>>()?;
        let is_among = |item: &Item| item.linked.after.is_none_or(|before| before < count);
        match items.iter().all(is_among) {
            true => Ok(items),
            false => Err(Garbled::Nonsense),
        }
    }

    fn item(&mut self) -> Result<Item, Garbled> {
        let name = self.text(NAME)?;
        let cost = Service::from_nanos(self.word()?);
        let mut spans = [Span::ZERO; 3];
        for span in &mut spans {
            *span = Span::from_nanos(self.word()?);
        }
        let [period, deadline, jitter] = spans;
        let kind = self.byte()?;
        let longest = Service::from_nanos(self.word()?);
        let last = Service::from_nanos(self.word()?);
        let regions = match kind {
            0 => Preemption::Anywhere,
            1 => Preemption::Floating { longest },
            2 => Preemption::Fixed { longest, last },
            3 => Preemption::Never,
            _ => return Err(Garbled::Nonsense),
        };
        let task = Task::new(cost, period)?.with_deadline(deadline)?;
        let task = task.with_jitter(jitter).with_preemption(regions)?;
        let after = Some(self.short()?).filter(|after| *after != NONE);
        let linked = Linked {
            task,
            after: after.map(usize::from),
            defers: self.flag()?,
            calls: self.number()?,
            wakes: self.number()?,
            quanta: self.word()?,
            polled: false,
        };
        Ok(Item { name, linked })
    }

    /// That was all.
    fn end<T>(self, message: T) -> Result<T, Garbled> {
        match self.0.is_empty() {
            true => Ok(message),
            false => Err(Garbled::Nonsense),
        }
    }
}

impl Ask {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let written = match self {
            Self::Join { name } => Writer::new(0).text(name, NAME),
            Self::Resume { name, seat, items } => {
                Writer::new(1).text(name, NAME).short(*seat).items(items)
            }
            Self::Hold { items, keep } => Writer::new(2).put(&[u8::from(*keep)]).items(items),
            Self::Settled(seat) => Writer::new(3).short(*seat),
            Self::List(from) => Writer::new(4).short(*from),
        };
        written.0
    }

    /// What these bytes say.
    ///
    /// # Errors
    ///
    /// [`Garbled`]: they are no message of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        let (kind, mut from) = Reader::new(bytes)?;
        let ask = match kind {
            0 => Self::Join {
                name: from.text(NAME)?,
            },
            1 => Self::Resume {
                name: from.text(NAME)?,
                seat: from.short()?,
                items: from.items()?,
            },
            2 => Self::Hold {
                keep: from.flag()?,
                items: from.items()?,
            },
            3 => Self::Settled(from.short()?),
            4 => Self::List(from.short()?),
            _ => return Err(Garbled::Nonsense),
        };
        from.end(ask)
    }
}

impl Answer {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let written = match self {
            Self::Welcome { seat, priority } => Writer::new(0).short(*seat).put(&[*priority]),
            Self::Held(bounds) => {
                let bounds = &bounds[..bounds.len().min(HANDLERS)];
                let all = Writer::new(1).short(bounds.len() as u16);
                let word = |all: Writer, bound: &Span| all.word(bound.as_nanos());
                bounds.iter().fold(all, word)
            }
            Self::No { bottleneck, reason } => {
                let (kind, own, other) = match bottleneck {
                    Bottleneck::Own(index) => (0, *index, ""),
                    Bottleneck::Other(name) => (1, NONE, &**name),
                    Bottleneck::All => (2, NONE, ""),
                };
                let who = Writer::new(2).put(&[kind]).short(own);
                who.text(other, 2 * NAME).text(reason, REASON)
            }
            Self::Refused(reason) => Writer::new(3).text(reason, REASON),
            Self::Gone { seat, process } => Writer::new(4).short(*seat).word((*process).into()),
            Self::Process(told) => Writer::new(5)
                .word(told.process.into())
                .word(told.user.into())
                .short(told.seat)
                .text(&told.name, NAME)
                .put(&[told.presence as u8])
                .items(&told.items),
            Self::End => Writer::new(6),
            Self::NotYet(reason) => Writer::new(7).text(reason, REASON),
        };
        written.0
    }

    /// What these bytes say.
    ///
    /// # Errors
    ///
    /// [`Garbled`]: they are no message of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        let (kind, mut from) = Reader::new(bytes)?;
        let answer = match kind {
            0 => Self::Welcome {
                seat: from.short()?,
                priority: from.byte()?,
            },
            1 => {
                let count = from.short()?;
                let bounds = (0..count).map(|_| from.word().map(Span::from_nanos));
                Self::Held(bounds.collect::<Result<_, _>>()?)
            }
            2 => {
                let (kind, own) = (from.byte()?, from.short()?);
                let other = from.text(2 * NAME)?;
                Self::No {
                    bottleneck: match kind {
                        0 => Bottleneck::Own(own),
                        1 => Bottleneck::Other(other),
                        2 => Bottleneck::All,
                        _ => return Err(Garbled::Nonsense),
                    },
                    reason: from.text(REASON)?,
                }
            }
            3 => Self::Refused(from.text(REASON)?),
            4 => Self::Gone {
                seat: from.short()?,
                process: from.number()?,
            },
            5 => Self::Process(Told {
                process: from.number()?,
                user: from.number()?,
                seat: from.short()?,
                name: from.text(NAME)?,
                presence: match from.byte()? {
                    0 => Presence::Here,
                    1 => Presence::Gone,
                    2 => Presence::Awaited,
                    3 => Presence::Stopped,
                    _ => return Err(Garbled::Nonsense),
                },
                items: from.items()?,
            }),
            6 => Self::End,
            7 => Self::NotYet(from.text(REASON)?),
            _ => return Err(Garbled::Nonsense),
        };
        from.end(answer)
    }
}

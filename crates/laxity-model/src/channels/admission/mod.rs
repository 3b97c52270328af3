//! Admission of channels: what each takes of the processors, links and buffers on its way, and whether it is granted.
//!
//! * [`Traffic`]: what a channel may send.
//! * [`Costs`]: what a message of it takes of a processor or a link.
//! * [`Resource`]: who was admitted to one of these, and the least delay that it can grant.
//! * [`Host`]: the resources of one host, which a channel goes through as it begins, passes or ends there, and its buffers. It is what signalling asks ([`Admits`](super::signalling::Admits)).
//! * [`Signals`]: what signalling has of each link, by a channel of its own.
//! * [`Path`]: all hosts on a channel's way, and what would be granted instead of what is not.
//!
//! On each hop a channel is a task: C for its largest message, T its least interval I = 1 / R_max, D the hop's delay d, cut at packets. In logical time its messages are never closer than I, so the burst costs buffers only. The exact
//! demand test of [`crate::analysis::edf`] decides, with best effort as somebody who is never due; steps and lines on a grid of times go before it, and say from when on all are in time for certain, or that there is too much: then the exact test looks only at those who are due until then, often nobody. An early
//! message, processed before its logical arrival, costs nobody anything, since its deadline is what it would have been.
//! What a host looks at for one decision is limited ([`MOST_ROWS`]): it is a channel in one step of a search, what comes before and between counted as if it were that. Who is granted is granted exactly; who is not for want of steps is told so.
//! By priority it is *D_order* that decides, at the place that a newcomer gets.

mod admits;
mod costs;
mod grid;
mod host;
mod members;
mod nearest;
mod order;
mod others;
mod path;
mod resource;
mod signals;
mod traffic;

pub use costs::{Costs, LinkCosts, Need, ProcessorCosts, packets};
pub use host::{Held, Host, Lack, MOST_ROWS, Stage};
pub use nearest::{Give, Nearest};
pub use path::{Path, Quote, Reason, Refusal, Request, spread};
pub use resource::{Demand, Member, Resource, Short};
pub use signals::Signals;
pub use traffic::{Traffic, TrafficError};

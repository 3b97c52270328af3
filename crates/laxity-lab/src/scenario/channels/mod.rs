//! A network that is described once, for all its hosts: `[hosts.*]`, `[links.*]`, `[channels.*]` and `[users.*]`.
//!
//! * `hosts`: hosts with their public keys, and the links between them.
//! * `ends`: where links' ends are.
//! * `channel`: real-time channels, and the way of each; [`route`](fn@route::fewest) finds the shortest.
//! * `users`: who may open or listen to which.
//! * [`digest`]: whether two hosts go by the same file, and where theirs differ.

mod channel;
pub mod digest;
mod ends;
mod hosts;
pub mod route;
mod types;
mod users;

pub use types::{Channel, Host, Late, Link, Network, Own, PORT, PublicKey, User};

use super::keys::{Key, Other, Own as OwnForm, Table, Without};
use super::reader::Section;
use super::sections::{NONE, Names};

static HOSTS: Key<Other> = Key::new(
    "hosts",
    &OwnForm("a table of names"),
    Without::Refused("{ robot = { key = \"5dab…\" } }"),
    "The hosts, two at least.",
);
static LINKS: Key<Other> = Key::new(
    "links",
    &OwnForm("a table of names"),
    Without::Refused("{ wire = { between = [\"robot\", \"base\"], rate = \"100 Mbit/s\" } }"),
    "What connects two of them.",
);
static CHANNELS: Key<Other> = Key::new(
    "channels",
    &OwnForm("a table of names"),
    NONE,
    "What is sent from one to another, within which time.",
);
static USERS: Key<Other> = Key::new(
    "users",
    &OwnForm("a table of names"),
    Without::Means("root, and who runs the node, alone"),
    "Who else may open or listen to which channels.",
);
static ROOT: Table = Table {
    heading: "The file",
    kind: None,
    about: "",
    keys: &[&HOSTS, &LINKS, &CHANNELS, &USERS],
};

/// All tables, in the order of a file.
pub(super) static TABLES: [&Table; 5] = [
    &ROOT,
    &hosts::HOST_KEYS,
    &hosts::LINK_KEYS,
    &channel::KEYS,
    &users::KEYS,
];

/// The whole file. `None` only where an error has been found.
pub(super) fn read(root: &Section<'_>) -> Option<Network> {
    root.keyed([&ROOT]);
    root.find(&HOSTS);
    root.find(&LINKS);
    let hosts = hosts::hosts(root);
    let links = hosts::links(root, &hosts);
    let channels = channel::channels(root, &hosts, &links);
    let users = users::users(root, &hosts, &channels);
    Some(Network {
        hosts: values(hosts)?,
        links: values(links)?,
        channels: values(channels)?,
        users: values(users)?,
    })
}

/// All that were declared, if each could be read.
fn values<T>(names: Names<T>) -> Option<Vec<T>> {
    names.into_iter().map(|declared| declared.value).collect()
}

//! Where a link's ends are: `at`.

use std::net::{IpAddr, SocketAddr};

use super::types::{Link, PORT};
use crate::scenario::keys::{Key, Other, Own as OwnForm, Without};
use crate::scenario::reader::Section;
use crate::scenario::sections::Names;
use crate::scenario::units::UnitError;

const EXAMPLE: &str = "[\"192.0.2.1\", \"192.0.2.2\"]";

pub(super) static AT: Key<Other> = Key::new(
    "at",
    &OwnForm("a list of two addresses, IPv4 or IPv6"),
    Without::Means("nowhere: it can be planned, and not served"),
    "Where its ends are, in the order of `between`. Nodes talk by UDP: to port 27768 (0x6c78), where there is no other one behind the address, as in \"192.0.2.1:7000\" or \"[2001:db8::1]:7000\". A node finds the interface of its end by the address.",
);

/// As the file has them; `None` where that is wrong.
pub(super) fn ends(section: &Section<'_>) -> Option<Option<[SocketAddr; 2]>> {
    if section.find(&AT).is_none() {
        return Some(None);
    }
    let texts = section.texts(AT.name, EXAMPLE)?;
    let [one, other] = texts.as_slice() else {
        let cause = format!("a link has two ends, and here are {}", texts.len());
        let remedy = format!("write an address for each end, such as: at = {EXAMPLE}");
        section.wrong(AT.name, cause, remedy);
        return None;
    };
    let [one, other] = [one, other].map(|end| section.parsed(end, address));
    let (one, other) = (one?.value, other?);
    let place = other.place;
    let other = other.value;
    if one.is_ipv4() != other.is_ipv4() {
        let cause = format!(
            "one end is at {}, and the other at {}",
            one.ip(),
            other.ip()
        );
        let remedy = "write two addresses of IPv4, or two of IPv6";
        section.findings.error(&place, cause, remedy);
        return None;
    }
    if one == other {
        let cause = format!("both ends of {} are at {one}", section.path);
        let remedy = "write the address of the host at the other end";
        section.findings.error(&place, cause, remedy);
        return None;
    }
    Some(Some([one, other]))
}

/// Reports links by which a host would have to listen twice at one place, which are told apart by nothing.
pub(super) fn distinct(root: &Section<'_>, links: &Names<Link>, host: impl Fn(usize) -> String) {
    let locals = |link: &Link| {
        let at = link.at.into_iter().flatten();
        let ends: Vec<_> = link.between.into_iter().zip(at).collect();
        ends
    };
    for (number, declared) in links.iter().enumerate() {
        let Some(link) = &declared.value else {
            continue;
        };
        let known = links[..number].iter().filter_map(|one| one.value.as_ref());
        for (end, at) in locals(link) {
            let mut known = known.clone();
            if let Some(other) = known.find(|one| locals(one).contains(&(end, at))) {
                let cause = format!(
                    "`{}` is at {at} for the link `{}` already",
                    host(end),
                    other.name
                );
                let remedy = format!(
                    "write another address there, or another port, such as \"{}\"",
                    SocketAddr::new(at.ip(), at.port().checked_add(1).unwrap_or(PORT))
                );
                root.findings.error(&declared.place, cause, remedy);
            }
        }
    }
}

/// An address of one host, with a port or with that of all nodes.
fn address(text: &str) -> Result<SocketAddr, UnitError> {
    let wrong = |cause: String, remedy: String| Err(UnitError::new(cause, remedy));
    if text.contains('%') {
        let remedy = "leave out `%` and the name: a node finds its interface by the address";
        return wrong(format!("`{text}` names an interface"), remedy.to_owned());
    }
    let bare = text
        .parse()
        .map(|address: IpAddr| SocketAddr::new(address, PORT));
    let Ok(at) = bare.or_else(|_| text.parse::<SocketAddr>()) else {
        let remedy = "write one such as \"192.0.2.1\", or with a port \"192.0.2.1:7000\" or \"[2001:db8::1]:7000\"; names are not looked up";
        return wrong(format!("`{text}` is no address"), remedy.to_owned());
    };
    let plain = at.ip().to_canonical();
    if plain != at.ip() {
        let remedy = format!("write {plain}");
        return wrong(
            format!("{} is an address of IPv4 within IPv6", at.ip()),
            remedy,
        );
    }
    let is_all = matches!(plain, IpAddr::V4(address) if address.is_broadcast());
    if plain.is_unspecified() || plain.is_multicast() || is_all {
        let remedy = "write the address that the host has on this link";
        return wrong(
            format!("{plain} is no single host's address"),
            remedy.to_owned(),
        );
    }
    if at.port() == 0 {
        let remedy = format!("write 1 to 65535, or leave it out for {PORT}");
        return wrong("nobody listens to port 0".to_owned(), remedy);
    }
    Ok(at)
}

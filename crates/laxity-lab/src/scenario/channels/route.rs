//! The way of a channel: which links it goes over.

use std::collections::VecDeque;

use super::types::Link;

/// What is known of the ways to a host.
#[derive(Clone, Copy)]
struct Reached {
    /// How many links away.
    hops: usize,
    /// The last of them.
    by: Option<usize>,
    /// There is another way that is as short.
    is_ambiguous: bool,
}

/// Why there is no such way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoRoute {
    /// None leads there.
    Apart,
    /// Several that are as short.
    Ambiguous,
}

/// The places of the links on the only way that is the shortest, in order; none where both hosts are one. Of places of hosts below `hosts`. O(hosts × links).
///
/// # Errors
///
/// [`NoRoute`].
pub fn fewest(
    links: &[Link],
    hosts: usize,
    (from, to): (usize, usize),
) -> Result<Vec<usize>, NoRoute> {
    let mut reached: Vec<Option<Reached>> = vec![None; hosts];
    let begin = Reached {
        hops: 0,
        by: None,
        is_ambiguous: false,
    };
    reached[from] = Some(begin);
    let mut next = VecDeque::from([(from, begin.hops)]);
    while let Some((at, hops)) = next.pop_front() {
        // By now all ways to it are known: whoever leads to it is nearer, and was looked at before.
        let is_ambiguous = reached[at].is_some_and(|reached| reached.is_ambiguous);
        for (place, link) in links.iter().enumerate() {
            let Some(other) = beyond(link, at) else {
                continue;
            };
            match &mut reached[other] {
                Some(known) if known.hops == hops + 1 => known.is_ambiguous = true,
                Some(_) => {}
                unknown => {
                    *unknown = Some(Reached {
                        hops: hops + 1,
                        by: Some(place),
                        is_ambiguous,
                    });
                    next.push_back((other, hops + 1));
                }
            }
        }
    }
    let found = reached[to].ok_or(NoRoute::Apart)?;
    if found.is_ambiguous {
        return Err(NoRoute::Ambiguous);
    }
    let mut route = Vec::with_capacity(found.hops);
    let mut at = to;
    while let Some(place) = reached[at].and_then(|reached| reached.by) {
        route.push(place);
        at = beyond(&links[place], at).ok_or(NoRoute::Apart)?;
    }
    route.reverse();
    Ok(route)
}

/// The host at the other end of a link; `None` where this one is at neither.
pub(crate) fn beyond(link: &Link, host: usize) -> Option<usize> {
    match link.between {
        [one, other] if one == host => Some(other),
        [one, other] if other == host => Some(one),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::Span;
    use proptest::prelude::*;

    use super::super::types::Own;
    use super::*;

    fn link(between: [usize; 2]) -> Link {
        Link {
            name: String::new(),
            between,
            rate: 1_000,
            own: Own::None,
            overhead: 0,
            seal: true,
            at: None,
            mtu: 1_500,
            propagation: Span::ZERO,
        }
    }

    /// All ways from one host to another that visit none twice.
    fn ways(links: &[Link], from: usize, to: usize, visited: &[usize]) -> Vec<Vec<usize>> {
        if from == to {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for (place, link) in links.iter().enumerate() {
            let next = beyond(link, from).filter(|next| !visited.contains(next));
            if let Some(next) = next {
                let visited = [visited, &[next]].concat();
                for way in ways(links, next, to, &visited) {
                    all.push([vec![place], way].concat());
                }
            }
        }
        all
    }

    proptest! {
        #[test]
        fn the_shortest_way_is_that_of_all_ways(ends in prop::collection::vec((0..6_usize, 1..6_usize), 0..9), from in 0..6_usize, to in 0..6_usize) {
            let between = ends.iter().map(|(one, more)| [*one, (one + more) % 6]);
            let links: Vec<Link> = between.map(link).collect();
            let mut ways = ways(&links, from, to, &[from]);
            ways.sort_by_key(Vec::len);
            let shortest = ways.iter().filter(|way| way.len() == ways[0].len()).count();
            let expected = match shortest {
                0 => Err(NoRoute::Apart),
                1 => Ok(ways[0].clone()),
                _ => Err(NoRoute::Ambiguous),
            };
            prop_assert_eq!(fewest(&links, 6, (from, to)), expected);
        }
    }
}

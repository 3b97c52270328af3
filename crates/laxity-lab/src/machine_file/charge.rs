//! What packets take of an interface's driver where a scenario does not state it: what was measured, or what is assumed.

use std::sync::Arc;

use super::Known;
use crate::each_once::each_once;
use crate::scenario::{INTERRUPT, Interface, Resolved, ResolvedVariant, TaskKind};

/// By which way a scenario's interface is opened on Linux, and whose figures the twin's card has.
const WAY: &str = "packet";

impl Resolved {
    /// Whether a network takes part in one of its variants.
    pub fn has_network(&self) -> bool {
        self.variants.iter().any(ResolvedVariant::has_network)
    }

    /// Takes from what is known of a machine what packets take of interfaces whose costs the file does not state. Tells of each, in a sentence, whether that was calibrated or is assumed;
    /// nothing of those that state it, or are charged to nobody, nor of a twin for which no machine is named.
    pub fn charge_packets(&mut self, known: &Known, is_live: bool) -> Vec<String> {
        let tasks = self
            .variants
            .iter_mut()
            .flat_map(|variant| &mut variant.tasks);
        each_once(tasks.filter_map(|task| {
            let TaskKind::Client(client) = &mut task.kind else {
                return None;
            };
            let client = Arc::make_mut(client);
            Arc::make_mut(&mut client.interface).charge(known, is_live)
        }))
    }
}

impl Interface {
    fn charge(&mut self, known: &Known, is_live: bool) -> Option<String> {
        let is_charged = !is_live || self.most.is_some();
        let is_asked = is_live || *known != Known::Nothing;
        if self.unstated.is_empty() || !is_charged || !is_asked {
            return None;
        }
        let cost = known.packets(WAY);
        if let Ok((cost, from)) = &cost {
            let found = cost.costs();
            for key in &self.unstated {
                match *key {
                    INTERRUPT => self.costs.interrupt = found.interrupt,
                    _ => (self.costs.packet, self.costs.byte_ps) = (found.packet, found.byte_ps),
                }
            }
            self.calibrated = Some(from.clone());
        }
        let whence = match cost {
            Ok((_, from)) => format!("calibrated, {from}"),
            Err(why) => format!("assumed: {why}; or state it"),
        };
        let keys: Vec<String> = self.unstated.iter().map(|key| self.costed(key)).collect();
        let keys = keys.join(" and ");
        Some(format!(
            "what packets take of `{}` and the file does not state, {keys}, is {whence}",
            self.name
        ))
    }

    /// A key with what is charged for it.
    fn costed(&self, key: &str) -> String {
        let costs = self.costs;
        match (key, costs.byte_ps) {
            (INTERRUPT, _) => format!("`{key}` {}", costs.interrupt),
            (_, 0) => format!("`{key}` {}", costs.packet),
            (_, byte) => format!("`{key}` {} and {byte} ps a byte", costs.packet),
        }
    }
}

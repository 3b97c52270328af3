//! A report in the making.

use std::collections::BTreeMap;

use laxity_model::verify::contract::Claimed;

use super::text::Holes;
use super::{Request, Said, Text};
use crate::report::{Chart, Check, Figure, Report, Row};

/// What a study has to say so far, in the words of its [`Text`].
pub struct Draft<'a> {
    text: &'static Text,
    request: &'a Request,
    report: Report,
    figures: BTreeMap<String, Figure>,
    measured_on: Option<String>,
}

impl<'a> Draft<'a> {
    /// The question, the circumstances, and nothing drawn yet.
    pub(super) fn new(
        text: &'static Text,
        request: &'a Request,
        measured_on: Option<String>,
    ) -> Self {
        let circumstances = text.circumstances.iter();
        let mut circumstances: Vec<(&'static str, String)> = circumstances
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect();
        let place = |of: &str| circumstances.iter().position(|(name, _)| *name == of);
        let (own, after) = (place("seed"), place("twin"));
        let seed = ("seed", request.seed.to_string());
        match own {
            Some(own) => circumstances[own] = seed,
            None => circumstances.insert(after.map_or(0, |twin| twin + 1), seed),
        }
        Self {
            text,
            request,
            report: Report {
                experiment: &text.name,
                title: text.title.clone(),
                summary: text.question.clone(),
                circumstances,
                ..Report::default()
            },
            figures: BTreeMap::new(),
            measured_on,
        }
    }

    /// The figure of this key, to be drawn into; `None` if it is not asked for.
    ///
    /// # Panics
    ///
    /// If the study has no such figure.
    pub fn figure(&mut self, key: &str) -> Option<&mut Figure> {
        if !self.request.wants(key) {
            return None;
        }
        let figure = self.figures.entry(key.into());
        Some(figure.or_insert_with(|| self.text.blank(key)))
    }

    /// The figures that were drawn so far, in the order of the study's words.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        let texts = self.text.figures.iter();
        texts.filter_map(|text| self.figures.get(&text.key))
    }

    /// Adds a table to a figure, if that is asked for and there are rows.
    pub fn table(
        &mut self,
        figure: &str,
        key: &str,
        holes: Holes<'_>,
        rows: impl IntoIterator<Item = Row>,
    ) {
        let table = self.text.table(key, holes, rows.into_iter().collect());
        if let Some(figure) = self.figure(figure).filter(|_| !table.rows.is_empty()) {
            figure.tables.push(table);
        }
    }

    /// Adds a drawing to a figure, if that is asked for.
    pub fn chart(&mut self, figure: &str, chart: Chart) {
        if let Some(figure) = self.figure(figure) {
            figure.charts.push(chart);
        }
    }

    /// Adds a remark to a figure, if that is asked for.
    pub fn remark(&mut self, figure: &str, remark: String) {
        if let Some(figure) = self.figure(figure) {
            figure.remarks.push(remark);
        }
    }

    /// Another title than the study's, which these results have not.
    pub fn entitle(&mut self, key: &str, holes: Holes<'_>) {
        self.report.title = self.text.say(key, holes);
    }

    /// Adds a sentence to the summary.
    pub fn say(&mut self, key: &str, holes: Holes<'_>) {
        self.report.summary.push(self.text.say(key, holes));
    }

    /// Says what a circumstance is, in the place that the study's words leave to it, or after those of all runs.
    pub fn circumstance(&mut self, name: &'static str, value: impl Into<String>) {
        let mut all = self.report.circumstances.iter_mut();
        if let Some((_, left)) = all.find(|(of, _)| *of == name) {
            *left = value.into();
            return;
        }
        self.report.circumstances.push((name, value.into()));
    }

    /// Claims something, with what was seen.
    pub fn claim(&mut self, key: &str, held: bool, holes: Holes<'_>) {
        let (claim, seen) = self.text.claim(key, holes);
        let held = Some(held);
        self.report.checks.push(Check { claim, held, seen });
    }

    /// The same of live runs, judged with what they `said` of themselves: what they leave open is not judged, and the report says why.
    /// A claim is certain that nothing disturbed could make otherwise: as a rule because it was broken while the machine went on.
    pub fn claim_here(
        &mut self,
        key: &str,
        (holds, is_certain): (bool, bool),
        holes: Holes<'_>,
        said: &Said,
    ) {
        let (claim, mut seen) = self.text.claim(key, holes);
        let judged = said.judge(Claimed { holds, is_certain });
        if let Err(why) = &judged {
            seen = format!("{seen}; not judged, {why}");
        }
        let held = judged.ok();
        self.report.checks.push(Check { claim, held, seen });
    }

    /// Adds sentences that are not the study's to the summary.
    pub(super) fn tell(&mut self, more: Vec<String>) {
        self.report.summary.extend(more);
    }

    /// The report: its figures in the order of the study's words, without those that nothing was drawn into.
    pub(super) fn finish(mut self) -> Report {
        let keys = self.text.figures.iter().map(|figure| &figure.key);
        let drawn = keys.filter_map(|key| self.figures.remove(key));
        self.report.figures = drawn.filter(|figure| !figure.is_empty()).collect();
        let host = self.measured_on.map(|host| ("measured on", host));
        self.report.circumstances.extend(host);
        self.report
    }
}

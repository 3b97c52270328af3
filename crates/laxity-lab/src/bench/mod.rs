//! The bench on which experiments are made.
//!
//! # How a study is written
//!
//! A study is a type that implements [`Study`], and a data file with its words:
//!
//! 1. `data/NAME.toml` is a [`Text`]: name, title, the figures with what each shows, the headings of its tables, the sentences that are
//!    claimed or told, with `{holes}` for what was seen, and what publications print; and whether repeats and a machine file are of use to it,
//!    without which nobody can ask for them. It is compiled in:
//!    `static TEXT: LazyLock<Text> = LazyLock::new(|| Text::parse(include_str!("../data/NAME.toml")));`
//! 2. [`Study::cases`] says what is run: plain values, each independent of all others. What depends on results comes in a later round
//!    ([`Study::rounds`]), with everything made so far at hand. The same cases may be run in the twin and live.
//! 3. [`Study::run`] runs one case on the [`Runner`] it is given, and says what was seen. It never asks which host that is unless the
//!    case is another one there.
//! 4. [`Study::judge`] draws everything that was [`Made`] into a [`Draft`] of the report: it takes a figure if that was asked for
//!    ([`Draft::figure`]), fills its tables ([`Draft::table`]) with rows of cells ([`Origin::row`](crate::report::Origin::row)), and claims
//!    ([`Draft::claim`]; of live runs [`Draft::claim_here`], with what they say of themselves). A figure that stays empty is left out.
//!
//! The bench does the rest: a pool of threads for the twin, the live host with its witness, signals, progress, errors that name their
//! case, circumstances, the order of the figures, rendering. It is listed in `laxity_studies::STUDIES` as an [`Experiment`], which the
//! command line finds by its name. What is run may be a scenario that the study brings along ([`scene`]). This machine comes first, so
//! that what cannot be measured there fails before the twin has worked for minutes, and so that the twin can be told of what was measured; how many receivers make
//! up its load is found before that ([`Study::loaded`]). A study of another shape implements [`Experiment`] itself, with
//! [`pool::map`] and [`Live`].

pub mod bodies;
mod draft;
pub mod host;
mod said;
pub mod scene;
mod text;

use std::collections::BTreeMap;
use std::fmt;

use laxity::Twin;
use laxity::study::Profile;
use laxity_model::HostError;
use laxity_model::enforce::machine::Machine;

use crate::each_once::each_once;
use crate::evidence::results::Speed;
use crate::machine_file::Elsewhere;
use crate::report::Report;
use crate::runner::speed::Took;
use crate::runner::{Progress, RunError};
pub use crate::runner::{load, pool};
use crate::scenario::Resolved;
pub use draft::Draft;
pub use host::{Live, Runner};
pub use said::Said;
pub use text::{FigureText, Holes, OptionText, Text};

/// What is asked of an experiment.
#[derive(Clone, Default, Debug)]
pub struct Request {
    /// The figures and tables wanted, by their keys; empty: all.
    pub figures: Vec<String>,
    /// Whether to measure on this machine. The twin is always run: it is what is compared with.
    pub live: bool,
    /// Threads for the twin; 0: one a processor. Makes no difference to the results.
    pub threads: usize,
    /// Everything random follows from it.
    pub seed: u64,
    /// Whether what is measured is measured at full length, which some studies have.
    pub full: bool,
    /// How often what is repeated is repeated (the study's transfers: ten); `None`: as often as its source did.
    pub repeats: Option<u32>,
    /// This machine as `laxity calibrate` found it, for predictions; `None`: no predictions.
    pub machine: Option<Machine>,
    /// In what that differs from this machine, where something is measured here to be compared with it.
    pub elsewhere: Option<Elsewhere>,
    /// What was chosen of the study's own options ([`Text::options`]), by name.
    pub options: BTreeMap<String, u64>,
}

impl Request {
    /// What was chosen of a study's own option, or what it is otherwise.
    ///
    /// # Errors
    ///
    /// [`RunError::CannotRun`] if it is out of its range.
    pub fn option(&self, text: &Text, name: &str) -> Result<u64, RunError> {
        let mut options = text.options.iter();
        let option = options.find(|option| option.name == name);
        let (default, most) = option.map_or((1, 1), |option| (option.default, option.most));
        match self.options.get(name).copied().unwrap_or(default) {
            value if (1..=most).contains(&value) => Ok(value),
            value => {
                let wrong = format!("{name}: {value} is not from 1 to {most}");
                Err(RunError::CannotRun(wrong))
            }
        }
    }

    /// Whether the figure of this key is wanted.
    pub fn wants(&self, key: &str) -> bool {
        self.figures.is_empty() || self.figures.iter().any(|figure| figure == key)
    }
}

/// An experiment, as the command line finds it.
pub trait Experiment: Sync {
    /// Its name, what it shows, and its figures.
    fn text(&self) -> &'static Text;

    /// Makes it. The report is the same every time but for what is measured live.
    ///
    /// # Errors
    ///
    /// The first run that fails, by the order of the runs; whatever was changed on this machine is restored.
    fn perform(&self, request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError>;
}

impl fmt::Debug for dyn Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text().name)
    }
}

/// Which runs are asked for: those of the twin, or those on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Round {
    /// Whether they are made on this machine.
    pub live: bool,
    /// Which round of them, from 0.
    pub number: usize,
}

/// A case and what was seen of it.
pub type Trial<S> = (<S as Study>::Case, <S as Study>::Seen);

/// Everything that was run so far.
pub struct Made<'a, S: Study> {
    /// What is asked for.
    pub request: &'a Request,
    /// In the twin, by the order of the cases.
    pub twin: Vec<Trial<S>>,
    /// On this machine, in the order in which it was made; empty if nothing was asked for.
    pub live: Vec<Trial<S>>,
    /// What this machine calls itself; `None` if nothing was run on it.
    pub measured_on: Option<String>,
    /// What was found of it for [`Study::loaded`].
    pub here: Option<Here>,
    /// What reference blocks took on it: before the first run, and after each.
    pub took: Vec<Took>,
    /// What the runs of each of the live cases say of themselves.
    pub said: Vec<Said>,
}

impl<'a, S: Study> Made<'a, S> {
    /// Nothing so far.
    pub const fn nothing(request: &'a Request) -> Self {
        Self {
            request,
            twin: Vec::new(),
            live: Vec::new(),
            measured_on: None,
            here: None,
            took: Vec::new(),
            said: Vec::new(),
        }
    }

    /// What the live runs of these cases say of themselves, all together.
    pub fn said(&self, is_read: impl Fn(&S::Case) -> bool) -> Said {
        let runs = self.live.iter().zip(&self.said);
        let read = runs.filter(|((case, _), _)| is_read(case));
        read.fold(Said::default(), |all, (_, said)| all.and(said))
    }

    /// How fast this machine was right before and after some of the live runs, by their places in [`Self::live`]; `None` if that was not measured.
    pub fn speed(&self, runs: impl IntoIterator<Item = usize>) -> Option<Speed> {
        let beside = runs.into_iter().flat_map(|run| [run, run + 1]);
        let took = beside.filter_map(|place| self.took.get(place));
        Speed::of(took.flatten().copied())
    }
}

/// This machine, as a scenario is run on it.
#[derive(Clone, Copy, Debug)]
pub struct Here {
    /// The processors of programs, and another one for what is outside them, if there is another one.
    pub processors: u16,
    /// So many receivers besides the first make up the load of the scenario's first device.
    pub further_receivers: usize,
}

/// An experiment of independent cases.
pub trait Study: Sync {
    /// One thing that is run.
    type Case: Send + Sync;
    /// What was seen of it.
    type Seen: Send;

    /// Its words.
    fn text(&self) -> &'static Text;

    /// The scenario whose load is found on this machine before anything else is run there.
    fn loaded(&self, _request: &Request) -> Option<&'static Resolved> {
        None
    }

    /// How often cases are asked for: more than once where some depend on what others showed.
    fn rounds(&self, _live: bool) -> usize {
        1
    }

    /// What is run in a round, in the order of the results. Nothing: the round is left out.
    ///
    /// # Errors
    ///
    /// [`RunError`] if what was made so far does not tell.
    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Self::Case>, RunError>
    where
        Self: Sized;

    /// A case's name for progress and errors.
    fn name(&self, case: &Self::Case) -> String;

    /// The twin that a case runs in.
    fn twin(&self, _case: &Self::Case) -> Twin {
        Twin::new(Profile::WIN2000_PII450)
    }

    /// How many processors of this machine it needs; a witness watches each.
    fn processors(&self) -> u16 {
        1
    }

    /// Runs a case.
    ///
    /// # Errors
    ///
    /// The host's.
    fn run(&self, case: &Self::Case, host: &mut Runner<'_>) -> Result<Self::Seen, HostError>;

    /// What is shown and claimed of everything.
    ///
    /// # Errors
    ///
    /// [`RunError`] if an analysis of what was seen fails.
    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError>
    where
        Self: Sized;
}

impl<S: Study> Experiment for S {
    fn text(&self) -> &'static Text {
        Study::text(self)
    }

    fn perform(&self, request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
        judge(self, &make(self, request, progress)?)
    }
}

/// The report of everything that was made.
///
/// # Errors
///
/// See [`Study::judge`].
pub fn judge<S: Study>(study: &S, made: &Made<'_, S>) -> Result<Report, RunError> {
    let mut draft = Draft::new(study.text(), made.request, made.measured_on.clone());
    if let Some(speed) = Speed::of(made.took.iter().flatten().copied()) {
        draft.circumstance("speed of this machine", speed.words());
    }
    study.judge(made, &mut draft)?;
    let notices = made.said.iter().flat_map(|said| &said.notices);
    draft.tell(each_once(notices.cloned()));
    Ok(draft.finish())
}

/// Runs all cases of a study: those on this machine if they are asked for, and then those of the twin.
///
/// # Errors
///
/// See [`Experiment::perform`].
pub fn make<'a, S: Study>(
    study: &S,
    request: &'a Request,
    progress: &mut dyn Progress,
) -> Result<Made<'a, S>, RunError> {
    let mut made = Made::nothing(request);
    if request.live {
        on_this_machine(study, &mut made, progress)?;
    }
    in_twin(study, &mut made, progress)?;
    progress.end();
    Ok(made)
}

fn in_twin<S: Study>(
    study: &S,
    made: &mut Made<'_, S>,
    progress: &mut dyn Progress,
) -> Result<(), RunError> {
    let name = |case: &S::Case| study.name(case);
    let one = |case: S::Case| {
        let mut twin = study.twin(&case);
        let seen = study.run(&case, &mut Runner::Twin(&mut twin));
        let seen = seen.map_err(|error| RunError::of(error, &study.name(&case)))?;
        Ok((case, seen))
    };
    for number in 0..study.rounds(false) {
        let live = false;
        let cases = study.cases(Round { live, number }, made)?;
        let trials = pool::map(cases, made.request.threads, name, one, progress)?;
        made.twin.extend(trials);
    }
    Ok(())
}

/// The live runs, one after the other; what they need to know of the load comes first.
fn on_this_machine<S: Study>(
    study: &S,
    made: &mut Made<'_, S>,
    progress: &mut dyn Progress,
) -> Result<(), RunError> {
    let mut live: Option<Live> = None;
    if let Some(scenario) = study.loaded(made.request) {
        progress.begin(1);
        progress.run(host::LOAD, 0);
        let host = live.insert(Live::new(study.processors())?);
        made.here = Some(host.load(scenario)?);
    }
    for number in 0..study.rounds(true) {
        let cases = study.cases(Round { live: true, number }, made)?;
        if cases.is_empty() {
            continue;
        }
        progress.begin(cases.len());
        for case in cases {
            let name = study.name(&case);
            let host = match &mut live {
                Some(host) => host,
                none => none.insert(Live::new(study.processors())?),
            };
            progress.run(&name, 0);
            let seen = host.run(&name, |runner| study.run(&case, runner))?;
            made.live.push((case, seen));
        }
    }
    made.measured_on = live.as_ref().map(Live::describe);
    (made.took, made.said) = live.map(Live::beside).unwrap_or_default();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::runner::Silent;

    static TEXT: LazyLock<Text> = LazyLock::new(|| {
        Text::parse(
            "name = \"a test\"\nsummary = \"\"\ntitle = \"\"\nquestion = []\ncircumstances = []\n",
        )
    });

    /// A study whose live runs cannot be made; and how many of its twin's were.
    struct Disturbed(AtomicUsize);

    impl Study for Disturbed {
        type Case = ();
        type Seen = ();

        fn text(&self) -> &'static Text {
            &TEXT
        }

        fn cases(&self, round: Round, _: &Made<'_, Self>) -> Result<Vec<()>, RunError> {
            match round.live {
                true => Err(RunError::CannotRun("somebody outranks it".into())),
                false => Ok(vec![()]),
            }
        }

        fn name(&self, (): &()) -> String {
            "a case".into()
        }

        fn run(&self, (): &(), _: &mut Runner<'_>) -> Result<(), HostError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn judge(&self, _: &Made<'_, Self>, _: &mut Draft<'_>) -> Result<(), RunError> {
            Ok(())
        }
    }

    /// A twin that has worked for minutes by then would have done so for nothing.
    #[test]
    fn where_this_machine_cannot_be_measured_the_twin_is_not_run_before_that_is_said() {
        let study = Disturbed(AtomicUsize::new(0));
        let made = |live| {
            let request = Request {
                live,
                ..Request::default()
            };
            make(&study, &request, &mut Silent).map(|made| made.twin.len())
        };
        let error = made(true).expect_err("its live runs cannot be made");
        assert!(error.to_string().contains("outranks"), "{error}");
        assert_eq!(study.0.load(Ordering::Relaxed), 0);
        assert!(matches!(made(false), Ok(1)));
    }
}

//! What is known of the machine that something is said of: nothing, or what a machine file says, which may be of another machine.

use std::io::ErrorKind;
use std::path::Path;

use laxity::calibrate::{Calibration, Circumstances, PacketCost, Packets};
use laxity_model::Span;
use laxity_model::enforce::machine::{Figure, Machine};

use super::{default_path, parse};
use crate::plain;
use crate::scenario::Diagnostic;

const MEASURES: &str = "`laxity calibrate` measures it";

/// What is known of what a machine costs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Known {
    /// Nobody measured it.
    #[default]
    Nothing,
    /// What was measured is left aside, as was asked.
    LeftOut,
    /// It was measured.
    Measured(Box<Measured>),
    /// There is a file, and this is why it cannot be read.
    Unreadable(String),
}

/// A machine as a file has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measured {
    /// What it costs.
    pub machine: Machine,
    /// What packets take of its drivers.
    pub packets: Packets,
    /// In what it differs from the machine that it is taken for; none where it is that.
    pub elsewhere: Option<Elsewhere>,
}

/// That a machine file is not of the machine that it is taken for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Elsewhere {
    /// Whether it is of other hardware; else another kernel ran on this.
    pub is_other_hardware: bool,
    /// In what they differ.
    pub words: String,
}

impl Known {
    /// What the file says that `laxity calibrate` left for the machine that this is.
    pub fn here() -> Self {
        default_path().map_or(Self::Nothing, |path| {
            Self::at(&path, &Circumstances::now(0))
        })
    }

    /// What a file says, taken for a machine in these circumstances.
    fn at(path: &Path, here: &Circumstances) -> Self {
        let name = plain(&path.display().to_string()).into_owned();
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Self::Nothing,
            Err(error) => return Self::Unreadable(format!("{name}: {error}")),
            Ok(text) => text,
        };
        match parse(&text, &name) {
            Ok(calibration) => Self::of(calibration, here),
            Err(errors) => {
                let first = errors.first().map_or(name, Diagnostic::in_one_line);
                Self::Unreadable(first)
            }
        }
    }

    /// What a text says that was read from a machine file of this name, taken for the machine that this is.
    ///
    /// # Errors
    ///
    /// See [`parse`].
    pub fn read(text: &str, name: &str) -> Result<Self, Vec<Diagnostic>> {
        Ok(Self::of(parse(text, name)?, &Circumstances::now(0)))
    }

    /// What was measured, taken for a machine in these circumstances.
    pub fn of(calibration: Calibration, here: &Circumstances) -> Self {
        let elsewhere = Elsewhere::of(&calibration.circumstances, here);
        let Calibration {
            machine, packets, ..
        } = calibration;
        Self::Measured(Box::new(Measured {
            machine,
            packets,
            elsewhere,
        }))
    }

    /// What packets take of a driver of this way to an interface, and where that was measured.
    ///
    /// # Errors
    ///
    /// Why that is not known, and what to do about it.
    pub(crate) fn packets(&self, way: &str) -> Result<(PacketCost, String), String> {
        let known = self.measured()?;
        let why = match known.packets.get(way) {
            Some(Ok(cost)) => return Ok((*cost, known.whence())),
            Some(Err(why)) => why,
            None => "the machine file is of a version that did not measure it",
        };
        Err(format!("{why}; {MEASURES}"))
    }

    /// The largest of these figures that was seen, and where that was measured.
    ///
    /// # Errors
    ///
    /// Why that is not known, and what to do about it.
    pub(crate) fn largest(&self, figures: &[Figure]) -> Result<(Span, String), String> {
        let known = self.measured()?;
        let largest = |figure: &Figure| known.machine.figure(*figure).at(1_000_000);
        let largest = figures.iter().map(largest).max();
        Ok((largest.unwrap_or_default(), known.whence()))
    }

    fn measured(&self) -> Result<&Measured, String> {
        match self {
            Self::Measured(known) => Ok(known),
            Self::Nothing => Err(format!("nobody measured it here, and {MEASURES}")),
            Self::LeftOut => Err("`--machine none` leaves out what was measured".to_owned()),
            Self::Unreadable(why) => Err(why.clone()),
        }
    }

    /// The machine, if it was measured.
    pub fn machine(&self) -> Option<&Machine> {
        match self {
            Self::Measured(known) => Some(&known.machine),
            Self::Nothing | Self::LeftOut | Self::Unreadable(_) => None,
        }
    }
}

impl Measured {
    /// When and how it was measured, and in what it differs from the machine that it is taken for.
    fn whence(&self) -> String {
        let from = &self.machine.provenance;
        let elsewhere = self.elsewhere.as_ref().map(Elsewhere::sentence);
        let elsewhere = elsewhere.map(|words| format!("; {words}"));
        format!("{from}{}", elsewhere.unwrap_or_default())
    }
}

impl Elsewhere {
    /// In what a machine that was measured differs from another one. What either does not say is no difference.
    pub fn of(there: &Circumstances, here: &Circumstances) -> Option<Self> {
        let count = |processors: u32| match processors {
            0 => String::new(),
            1 => "1 processor".to_owned(),
            several => format!("{several} processors"),
        };
        let linux = |kernel: &str| match kernel {
            "" => String::new(),
            release => format!("Linux {release}"),
        };
        let differ = |there: String, here: String| {
            // The file has texts as they may be shown.
            let here = plain(&here).into_owned();
            let both = !there.is_empty() && !here.is_empty();
            (both && there != here).then(|| format!("{there}, here {here}"))
        };
        let hardware = [
            differ(there.model.clone(), here.model.clone()),
            differ(count(there.processors), count(here.processors)),
            differ(there.hypervisor.clone(), here.hypervisor.clone()),
        ];
        let is_other_hardware = hardware.iter().any(Option::is_some);
        let kernel = differ(linux(&there.kernel), linux(&here.kernel));
        let all: Vec<String> = hardware.into_iter().chain([kernel]).flatten().collect();
        (!all.is_empty()).then(|| Self {
            is_other_hardware,
            words: all.join("; "),
        })
    }

    /// As what it was measured, in a sentence: on another machine, or under another kernel.
    pub fn sentence(&self) -> String {
        let other = match self.is_other_hardware {
            true => "on another machine",
            false => "under another kernel",
        };
        format!("measured {other}: {}", self.words)
    }
}

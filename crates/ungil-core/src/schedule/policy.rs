//! The policies and the levels, by name.

use std::fmt;
use std::str::FromStr;

/// How the GIL is scheduled. The numbers travel in shared memory and never change their meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Policy {
    /// As CPython does it: any waiter that has waited for a switch interval asks, and the kernel
    /// picks who is woken.
    #[default]
    Stock = 0,
    /// Equal shares of the time in which the GIL was wanted, and a thread that used less than its
    /// share comes first and asks at once.
    Interactive = 1,
    /// Equal shares, a quantum at a time: nobody is interrupted within a quantum.
    Fair = 2,
    /// Equal shares with a long quantum: few handoffs.
    Batch = 3,
    /// Higher levels first. A waiting thread rises by one level each [`super::scheduler::AGING_NS`].
    Priority = 4,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 5] =
        [Self::Stock, Self::Interactive, Self::Fair, Self::Batch, Self::Priority];

    /// The policy with this number, if there is one.
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Stock,
            1 => Self::Interactive,
            2 => Self::Fair,
            3 => Self::Batch,
            4 => Self::Priority,
            _ => return None,
        })
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Interactive => "interactive",
            Self::Fair => "fair",
            Self::Batch => "batch",
            Self::Priority => "priority",
        }
    }

    /// How long a thread runs before an equal one is let in, unless the user says otherwise.
    pub const fn quantum_ns(self) -> u64 {
        match self {
            // CPython's own switch interval.
            Self::Stock | Self::Interactive | Self::Fair | Self::Priority => 5_000_000,
            Self::Batch => 100_000_000,
        }
    }
}

/// A thread's level: its weight where time is shared, its rank under [`Policy::Priority`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Level {
    /// A quarter of a normal thread's share.
    Low = 0,
    /// What every thread begins with.
    #[default]
    Normal = 1,
    /// Four times a normal thread's share.
    High = 2,
}

impl Level {
    /// Every level, lowest first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];

    /// The level with this number, if there is one.
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Low,
            1 => Self::Normal,
            2 => Self::High,
            _ => return None,
        })
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }

    /// Its part of what is shared, beside those of others.
    pub const fn weight(self) -> u64 {
        match self {
            Self::Low => 1,
            Self::Normal => 4,
            Self::High => 16,
        }
    }

    /// Real time as this level's virtual time: it passes four times as fast a level lower.
    pub const fn to_virtual(self, real_ns: u64) -> u64 {
        match self {
            Self::Low => real_ns.saturating_mul(4),
            Self::Normal => real_ns,
            Self::High => real_ns / 4,
        }
    }

    /// The inverse of [`Self::to_virtual`].
    pub const fn to_real(self, virtual_ns: u64) -> u64 {
        match self {
            Self::Low => virtual_ns / 4,
            Self::Normal => virtual_ns,
            Self::High => virtual_ns.saturating_mul(4),
        }
    }
}

/// A policy and its quantum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The policy.
    pub policy: Policy,
    /// How long a thread runs before an equal one is let in, in nanoseconds.
    pub quantum_ns: u64,
}

impl From<Policy> for Settings {
    fn from(policy: Policy) -> Self {
        Self { policy, quantum_ns: policy.quantum_ns() }
    }
}

/// A name that is none of those known.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownName;

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown name")
    }
}

impl std::error::Error for UnknownName {}

impl FromStr for Policy {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|policy| policy.name() == name).ok_or(UnknownName)
    }
}

impl FromStr for Level {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|level| level.name() == name).ok_or(UnknownName)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back_to_what_they_name() {
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
            assert_eq!(Policy::from_number(policy as u32), Some(policy));
        }
        for level in Level::ALL {
            assert_eq!(level.name().parse(), Ok(level));
            assert_eq!(Level::from_number(level as u32), Some(level));
        }
        assert_eq!("fifo".parse::<Policy>(), Err(UnknownName));
        assert_eq!(Level::from_number(3), None);
    }
}

//! What this machine can do, and the remedy for what it cannot.

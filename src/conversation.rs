//! Who said what to whom: triage, decisions, commands.

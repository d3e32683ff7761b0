//! Carries the agent's effects out: journal first, then act, then feed the result back.

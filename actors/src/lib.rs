//! Actors order: messages, scheduler, workers, plans, policies. Pure state machines; only
//! `drive` touches threads, channels and time.

//! The work done for each client.

use std::collections::HashMap;

use lapwing_traces::{Nanos, RequestTimes};

use super::latencies::RecentRequests;
use crate::policy::{Charge, ClientId, End};
use crate::stats::{CLIENTS_MAX, ClientStats, Latencies, Work};

/// Seconds of the window in which recent work is counted.
const WINDOW: u64 = 60;

/// Number of an account. It stays valid while the client has a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AccountId(usize);

/// The accounts of all clients.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    all: Work,
    recent: RecentRequests,
    accounts: Vec<Account>,
    numbers: HashMap<ClientId, AccountId>,
}

#[derive(Debug, Default)]
struct Account {
    stats: ClientStats,
    /// Work of the latest seconds, each in the place of its number modulo the window.
    seconds: Vec<Second>,
    latest: Nanos,
    recent: RecentRequests,
}

#[derive(Clone, Copy, Debug, Default)]
struct Second {
    number: u64,
    prompt_tokens: usize,
    generated_tokens: usize,
}

/// A change of a request's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Arrived,
    Refused,
    /// With the number of prompt tokens that the prefix cache had, if it is admitted for the first time.
    Admitted {
        cached: usize,
        recomputed: usize,
    },
    Preempted,
    /// Ended, while it ran or from the queue.
    Ended {
        end: End,
        ran: bool,
    },
}

impl Accounts {
    /// The account of a client.
    pub(super) fn of(&mut self, client: &ClientId) -> AccountId {
        if let Some(number) = self.numbers.get(client) {
            return *number;
        }
        let number = self.vacant().unwrap_or_else(|| {
            self.accounts.push(Account::default());
            AccountId(self.accounts.len() - 1)
        });
        self.accounts[number.0] = Account {
            stats: ClientStats { client: client.clone(), ..ClientStats::default() },
            ..Account::default()
        };
        self.numbers.insert(client.clone(), number);
        number
    }

    /// Forgets the client without requests that sent one least recently, if there are too many.
    fn vacant(&mut self) -> Option<AccountId> {
        if self.accounts.len() < CLIENTS_MAX {
            return None;
        }
        let idle = |(_, account): &(usize, &Account)| {
            account.stats.waiting == 0 && account.stats.running == 0
        };
        let idle = self.accounts.iter().enumerate().filter(idle);
        let (place, account) = idle.min_by_key(|(_, account)| account.latest)?;
        self.numbers.remove(&account.stats.client);
        Some(AccountId(place))
    }

    pub(super) fn on_step(&mut self, at: AccountId, step: Step, now: Nanos) {
        let Account { stats, latest, .. } = &mut self.accounts[at.0];
        match step {
            Step::Arrived => {
                stats.waiting += 1;
                *latest = now;
            }
            Step::Refused => {}
            Step::Admitted { .. } => {
                stats.waiting -= 1;
                stats.running += 1;
            }
            Step::Preempted => {
                stats.running -= 1;
                stats.waiting += 1;
            }
            Step::Ended { ran: true, .. } => stats.running -= 1,
            Step::Ended { ran: false, .. } => stats.waiting -= 1,
        }
        for work in [&mut stats.work, &mut self.all] {
            match step {
                Step::Arrived => work.requests += 1,
                Step::Refused => work.refused += 1,
                Step::Admitted { cached, recomputed } => {
                    work.cached_tokens += cached;
                    work.recomputed_tokens += recomputed;
                }
                Step::Preempted => work.preempted += 1,
                Step::Ended { end: End::Completed, .. } => work.finished += 1,
                Step::Ended { end: End::Failed, .. } => work.failed += 1,
                Step::Ended { end: End::Cancelled, .. } => work.cancelled += 1,
            }
        }
    }

    /// Notes the times of a request that has all of its tokens.
    pub(super) fn completed(&mut self, at: AccountId, times: &RequestTimes) {
        for recent in [&mut self.accounts[at.0].recent, &mut self.recent] {
            recent.add(times);
        }
    }

    pub(super) fn charge(&mut self, at: AccountId, charge: Charge, now: Nanos) {
        let Charge { prompt_rows, recomputed_rows, generated_tokens } = charge;
        let account = &mut self.accounts[at.0];
        for work in [&mut account.stats.work, &mut self.all] {
            work.prompt_tokens += prompt_rows;
            work.recomputed_rows += recomputed_rows;
            work.generated_tokens += generated_tokens;
        }
        account.seconds.resize(WINDOW as usize, Second::default());
        let number = now.0 / 1_000_000_000;
        let second = &mut account.seconds[(number % WINDOW) as usize];
        if second.number != number {
            *second = Second { number, ..Second::default() };
        }
        second.prompt_tokens += prompt_rows;
        second.generated_tokens += generated_tokens;
    }

    /// The times of all requests.
    pub(super) fn latencies(&self) -> Latencies {
        self.recent.report()
    }

    /// The work of all clients, and each client, by name.
    pub(super) fn report(&self, now: Nanos) -> (Work, Vec<ClientStats>) {
        let present = now.0 / 1_000_000_000;
        let report = |account: &Account| {
            let recent = account.seconds.iter().filter(|second| second.number + WINDOW > present);
            ClientStats {
                prompt_tokens_last_minute: recent.clone().map(|s| s.prompt_tokens).sum(),
                generated_tokens_last_minute: recent.map(|s| s.generated_tokens).sum(),
                latencies: account.recent.report(),
                ..account.stats.clone()
            }
        };
        let mut clients: Vec<ClientStats> = self.accounts.iter().map(report).collect();
        clients.sort_by(|one, other| one.client.cmp(&other.client));
        (self.all, clients)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn work_of_the_last_minute_is_counted_and_older_work_is_not() {
        let mut accounts = Accounts::default();
        let at = accounts.of(&"a".into());
        for (second, generated_tokens) in [(0, 1), (1, 2), (59, 4), (60, 8), (130, 16)] {
            let charge = Charge { prompt_rows: 1, generated_tokens, ..Charge::default() };
            accounts.charge(at, charge, Nanos(second * SECOND));
            let recent = accounts.report(Nanos(second * SECOND)).1[0].generated_tokens_last_minute;
            let expected = [(0, 1), (1, 3), (59, 7), (60, 14), (130, 16)];
            assert!(expected.contains(&(second, recent)), "{recent} at {second} s");
        }
        let (all, clients) = accounts.report(Nanos(500 * SECOND));
        assert_eq!((all.prompt_tokens, all.generated_tokens), (5, 31));
        assert_eq!((clients[0].work, clients[0].prompt_tokens_last_minute), (all, 0));
    }

    #[test]
    fn clients_without_requests_are_forgotten_when_there_are_too_many() {
        let mut accounts = Accounts::default();
        for client in 0..CLIENTS_MAX as u64 + 5 {
            let at = accounts.of(&format!("{client:04}").into());
            accounts.on_step(at, Step::Arrived, Nanos(client));
            if client > 0 {
                let step = Step::Ended { end: End::Completed, ran: false };
                accounts.on_step(at, step, Nanos(client));
            }
        }
        let (all, clients) = accounts.report(Nanos(0));
        assert_eq!((all.requests, all.finished), (CLIENTS_MAX + 5, CLIENTS_MAX + 4));
        let names: Vec<&str> = clients.iter().filter_map(|stats| stats.client.name()).collect();
        assert_eq!((names.len(), names[0], names[1]), (CLIENTS_MAX, "0000", "0006"));
    }
}
